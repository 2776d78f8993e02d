"""Which days are built and true: one row a kind and day, the lock under which a day is built or marked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime

from django.db import transaction

from agent.conf import agent_settings
from agent.db import one_writer
from governance.base import database as database  # the same place, for who builds and who reads
from governance.models import RollupDay

USAGE, RUN, TOOL = KINDS = ("usage", "run", "tool")
CLEAN, DIRTY = "clean", "dirty"
_AT_ONCE = 500


def zone_name() -> str:
    return str(agent_settings().report_time_zone)


@contextmanager
def written() -> Iterator[None]:
    """One transaction of ours, or the caller's."""
    using = database()
    with one_writer(using), transaction.atomic(using=using):
        yield


def mark_dirty(kind: str, days: Collection[date]) -> None:
    """Have these days read from their base rows until they are built anew; in the transaction that changes the rows.

    A day without a mark gets one: a build of it that is under way has not committed its own, and would overwrite ours
    with what it read before. The insert waits for that build, and the update comes after it.
    """
    rows = RollupDay.objects.using(database())
    ordered = sorted(set(days))
    for start in range(0, len(ordered), _AT_ONCE):
        some = ordered[start : start + _AT_ONCE]
        rows.bulk_create([RollupDay(kind=kind, day=day, state=DIRTY) for day in some], ignore_conflicts=True)
        rows.filter(kind=kind, day__in=some).update(state=DIRTY)


def locked(kind: str, day: date) -> RollupDay:
    """The mark of a day, which nobody else changes until our transaction ends."""
    rows = RollupDay.objects.using(database())
    rows.bulk_create([RollupDay(kind=kind, day=day, state=DIRTY)], ignore_conflicts=True)
    return rows.select_for_update().get(kind=kind, day=day)


def clean_days(kind: str, first: date, last: date) -> dict[date, datetime]:
    """The days that rollups may be read of, each with its cut."""
    rows = RollupDay.objects.using(database()).filter(
        kind=kind, day__gte=first, day__lte=last, state=CLEAN, time_zone=zone_name()
    )
    return {day: cut for day, cut in rows.values_list("day", "cut") if cut is not None}


def foreign_days() -> Iterable[tuple[str, date]]:
    """Days that were built for another time zone: they are not read until they are built anew."""
    rows = RollupDay.objects.using(database()).filter(state=CLEAN).exclude(time_zone=zone_name())
    return rows.order_by("day").values_list("kind", "day")
