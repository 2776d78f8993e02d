"""Keeping the days built: what is closed and not built, dirty, or had rows settled since; newest first."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime

from django.db.models import Min, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from agent.conf import agent_settings
from agent.models import Run, ToolCall, UsageEntry
from governance.base import begun_in, created_in, genuine_calls
from governance.days import ONE_DAY, last_closed, span_of, today
from governance.models import RollupDay
from governance.rollups.building import SETTLING, build
from governance.rollups.marks import CLEAN, KINDS, RUN, TOOL, USAGE, clean_days, database, written

logger = logging.getLogger("governance.rollups")

DAYS_A_TURN = 30
COUNTED_DAYS = 3  # days whose rows are counted again: a transaction may have committed late, a row may be gone


def roll_up(*, now: datetime | None = None) -> int:
    """Build at most thirty days; how many. Safe in several processes at once."""
    now = now or timezone.now()
    left = DAYS_A_TURN
    for kind in KINDS:
        built = 0
        for day in _due(kind, now):
            if built >= left:
                break
            built += build(kind, day, now=now)
        else:
            _move_cut(kind, now)
        left -= built
    return DAYS_A_TURN - left


def rebuild(first: date | None = None, last: date | None = None, *, kinds: Iterable[str] = KINDS) -> Iterator[date]:
    """Build every closed day that has rows, or those of the range, one after the other."""
    zone = agent_settings().report_time_zone
    newest = last_closed(zone)
    for kind in kinds:
        oldest = _oldest(kind)
        if oldest is None:
            continue
        day = min(last or newest, newest)
        while day >= max(first or oldest, oldest):
            build(kind, day)
            yield day
            day -= ONE_DAY


def _due(kind: str, now: datetime) -> list[date]:
    zone = agent_settings().report_time_zone
    newest, oldest = last_closed(zone, now), _oldest(kind)
    if oldest is None:
        return []
    clean = clean_days(kind, oldest, newest)
    days = {newest - number * ONE_DAY for number in range((newest - oldest).days + 1)} - clean.keys()
    days |= _settled_since(kind, clean, now - SETTLING)
    days |= {day for day in _recent(newest) if day in clean and _has_changed(kind, day)}
    return sorted(days, reverse=True)


def _recent(newest: date) -> Iterator[date]:
    return (newest - number * ONE_DAY for number in range(COUNTED_DAYS))


def _has_changed(kind: str, day: date) -> bool:
    """Whether a built day has another number of rows by now."""
    mark = RollupDay.objects.using(database()).filter(kind=kind, day=day, state=CLEAN).first()
    if mark is None or mark.cut is None:
        return False
    return _count_of(kind, day, mark.cut) != mark.source_rows


def _count_of(kind: str, day: date, cut: datetime) -> int:
    spans = [span_of(day, agent_settings().report_time_zone)]
    if kind == RUN:
        return begun_in(Run.objects.using(database()), spans).filter(settled_at__lt=cut).count()
    if kind == TOOL:
        calls = genuine_calls(created_in(ToolCall.objects.using(database()), spans))
        return calls.filter(settled_at__lt=cut).count()
    return created_in(UsageEntry.objects.using(database()), spans).count()


def _settled_since(kind: str, clean: Mapping[date, datetime], until: datetime) -> set[date]:
    """Built days with rows that were settled after the day's cut."""
    if kind == USAGE or not clean:
        return set()
    zone = agent_settings().report_time_zone
    late = ((today(zone, at), settled) for at, settled in _late(kind, min(clean.values()), until))
    return {day for day, settled in late if day in clean and settled >= clean[day]}


def _late(kind: str, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """When rows that were settled in this time are counted, and when they were settled."""
    settled = Q(settled_at__gte=since, settled_at__lt=until)
    if kind == RUN:
        runs = Run.objects.using(database()).filter(settled).annotate(at=Coalesce("started_at", "created_at"))
        found = runs.values_list("at", "settled_at").iterator()
    else:
        calls = genuine_calls(ToolCall.objects.using(database()).filter(settled))
        found = calls.values_list("created_at", "settled_at").iterator()
    yield from ((at, settled_at) for at, settled_at in found if settled_at is not None)


def _move_cut(kind: str, now: datetime) -> None:
    """Every built day holds what was settled until now: readers look for later rows from here on."""
    if kind == USAGE:
        return
    cut = now - SETTLING  # what was settled before it is committed
    with written():
        marks = RollupDay.objects.using(database()).filter(kind=kind, state=CLEAN, cut__lt=cut)
        clean = {mark.day: mark.cut for mark in marks.select_for_update().order_by("day") if mark.cut}
        marks.exclude(day__in=_settled_since(kind, clean, cut)).update(cut=cut)


def _oldest(kind: str) -> date | None:
    """The first day with rows; what was never settled is read from its base rows anyway."""
    first: datetime | None
    if kind == RUN:
        first = Run.objects.using(database()).aggregate(at=Min("started_at"))["at"]
    elif kind == TOOL:
        first = ToolCall.objects.using(database()).aggregate(at=Min("created_at"))["at"]
    else:
        first = UsageEntry.objects.using(database()).aggregate(at=Min("created_at"))["at"]
    return None if first is None else today(agent_settings().report_time_zone, first)
