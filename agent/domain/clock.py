"""How an instant is written on the wire and in JSON columns."""

from __future__ import annotations

from datetime import UTC, datetime


def wire_time(instant: datetime) -> str:
    """ISO 8601 in UTC, with milliseconds and `Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
