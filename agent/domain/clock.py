"""How an instant is written on the wire and in JSON columns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent.errors import Invalid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)

YEARS = range(1970, 9000)  # of what somebody asks for: others are slips, and zones overflow at the calendar's ends


def wire_time(instant: datetime) -> str:
    """ISO 8601 in UTC, with milliseconds and `Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def epoch_ms(instant: datetime) -> int:
    """Whole milliseconds since 1970, rounded down; an instant without a zone is none."""
    if instant.tzinfo is None:
        raise Invalid.field("clock", "an instant with a time zone")
    return (instant - _EPOCH) // _MS
