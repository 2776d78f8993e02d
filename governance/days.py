"""Days of the reporting time zone and the instants at which they begin (spec 08 §1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from django.utils import timezone

from agent.conf import agent_settings
from agent.domain.clock import YEARS
from agent.errors import Invalid

ONE_DAY = timedelta(days=1)
CLOSED_AFTER = timedelta(hours=1)
DEFAULT_DAYS = 30
MOST_DAYS = 3660  # ten years: a longer range is a slip of the keyboard


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of time, half-open: its start belongs to it, its end does not."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRange:
    """Days of one zone, both ends inclusive."""

    first: date
    last: date
    zone: tzinfo

    @classmethod
    def of(cls, first: date | None = None, last: date | None = None, *, now: datetime | None = None) -> DayRange:
        """The given days of the reporting zone; what is not given makes it thirty days, today included."""
        for name, day in (("fromDay", first), ("toDay", last)):
            if day is not None and day.year not in YEARS:
                raise Invalid.field(name, f"a day of the years {YEARS.start} to {YEARS.stop - 1}")
        zone = agent_settings().report_time_zone
        end = last or (max(first, today(zone, now)) if first else today(zone, now))
        begin = first or end - (DEFAULT_DAYS - 1) * ONE_DAY
        if begin > end:
            raise Invalid.field("fromDay", "not after toDay")
        if (end - begin).days >= MOST_DAYS:
            raise Invalid.field("fromDay", f"at most {MOST_DAYS} days before toDay")
        return cls(first=begin, last=end, zone=zone)

    @property
    def span(self) -> Span:
        return Span(start=start_of(self.first, self.zone), end=start_of(self.last + ONE_DAY, self.zone))

    def __len__(self) -> int:
        return (self.last - self.first).days + 1

    def days(self) -> Iterator[date]:
        return (self.first + number * ONE_DAY for number in range(len(self)))

    def before(self) -> DayRange:
        """The equally long range that ends where this one begins."""
        return DayRange(first=self.first - len(self) * ONE_DAY, last=self.first - ONE_DAY, zone=self.zone)


def today(zone: tzinfo, now: datetime | None = None) -> date:
    return (now or timezone.now()).astimezone(zone).date()


def start_of(day: date, zone: tzinfo) -> datetime:
    """The instant at which a day begins; where the clock skips its midnight, the instant of the skip."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)


def span_of(day: date, zone: tzinfo) -> Span:
    return Span(start=start_of(day, zone), end=start_of(day + ONE_DAY, zone))


def last_closed(zone: tzinfo, now: datetime | None = None) -> date:
    """The newest day that ended at least an hour ago."""
    return today(zone, (now or timezone.now()) - CLOSED_AFTER) - ONE_DAY


def parse_day(name: str, text: str) -> date:
    """A day as a query names it; `Invalid` names the field."""
    try:
        if len(text) != 10:
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise Invalid.field(name, "a day as YYYY-MM-DD") from None


def parse_days(first: str | None, last: str | None) -> tuple[date | None, date | None]:
    """What `--from` and `--to` of a command name; `Invalid` for what is no day, and for an end before its start."""
    start = parse_day("--from", first) if first else None
    end = parse_day("--to", last) if last else None
    if start is not None and end is not None and start > end:
        raise Invalid.field("--from", "not after --to")
    return start, end


def spans_of(days: Iterable[date], zone: tzinfo) -> Sequence[Span]:
    """Days in ascending order as few stretches: neighbours make one."""
    stretches: list[list[date]] = []
    for day in days:
        if stretches and stretches[-1][1] + ONE_DAY == day:
            stretches[-1][1] = day
        else:
            stretches.append([day, day])
    return [Span(start=start_of(first, zone), end=start_of(last + ONE_DAY, zone)) for first, last in stretches]
