"""Which days of a range are read from rollups and which from their base rows (spec 08 §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.db.models import Q
from django.utils import timezone

from governance.days import DayRange, Span, last_closed, spans_of
from governance.rollups.marks import clean_days


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A range in two parts that do not overlap and leave nothing out."""

    rolled: Mapping[date, datetime]  # days of rollups, each with its cut
    live: Sequence[Span]

    @property
    def cut(self) -> datetime | None:
        """From here on rows may have been settled that no rollup holds."""
        return min(self.rolled.values(), default=None)

    def rolled_q(self) -> Q:
        """The rollup rows to read: a range and its holes, which is shorter than a list of days."""
        first, last = min(self.rolled), max(self.rolled)
        holes = [day for day in DayRange(first=first, last=last, zone=_ANY).days() if day not in self.rolled]
        found = Q(day__gte=first, day__lte=last)
        return found & ~Q(day__in=holes) if holes else found


_ANY = timezone.get_fixed_timezone(0)  # days are counted, no instants are asked for


def parts(kind: str, days: DayRange) -> Parts:
    """What rollups can answer of a range now. Inside of `one_view`, so that they still can when they are read."""
    newest = min(days.last, last_closed(days.zone))
    rolled = clean_days(kind, days.first, newest) if newest >= days.first else {}
    return Parts(rolled=rolled, live=spans_of((day for day in days.days() if day not in rolled), days.zone))


def base_alone(days: DayRange) -> Parts:
    """The whole range from base rows: for what no rollup tells apart."""
    return Parts(rolled={}, live=[days.span])
