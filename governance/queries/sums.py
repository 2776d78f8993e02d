"""Sums of the ledger over a range: rollups of closed days and the rows of the others, added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from django.db import models
from django.db.models import Case, Count, IntegerField, Min, Q, QuerySet, Value, When

from agent.models import UsageEntry
from agent.models.tenants import Tenants
from governance.base import created_in
from governance.days import start_of, today
from governance.measures import MEASURES, THREAD, rolled
from governance.models import ThreadUsageRollup, UsageDayRollup, UsageRollup
from governance.queries.parts import Parts, base_alone, parts
from governance.queries.selection import Selection
from governance.reading import remembered
from governance.rollups.marks import USAGE, database

DAY = "day"
CUBE = ("model_id", "agent_name", "purpose", "tenant_ref")
CUBE_SET = frozenset(CUBE)
Key = tuple[Any, ...]
Sums = dict[str, int]


def usage_sums(
    selection: Selection, by: Sequence[str] = (), measures: Sequence[str] = tuple(MEASURES)
) -> dict[Key, Sums]:
    """Sums by dimensions of the ledger (`day` is one); two statements at most, none where the view has the cube."""
    if CUBE_SET.issuperset(by):
        key = ("cube", selection.range, tuple(selection.filters.items()), _hashable(selection.tenants))
        return margin(remembered(key, lambda: _sums(selection, CUBE, tuple(MEASURES))), by, measures)
    return _sums(selection, by, measures)


def margin(cube: Mapping[Key, Sums], by: Sequence[str], measures: Sequence[str]) -> dict[Key, Sums]:
    """The cube seen from some of its sides."""
    places = [CUBE.index(name) for name in by]
    sides: dict[Key, Sums] = {}
    for key, sums in cube.items():
        mine = sides.setdefault(tuple(key[place] for place in places), dict.fromkeys(measures, 0))
        for name in measures:
            mine[name] += sums[name]
    return sides


def _hashable(tenants: Tenants) -> tuple[str | None, ...] | None:
    return None if tenants is None else tuple(tenants)


def _sums(selection: Selection, by: Sequence[str], measures: Sequence[str]) -> dict[Key, Sums]:
    table = UsageRollup if "actor_ref" in by or selection.has("actor") else UsageDayRollup
    return _summed(selection, by, measures, table, parts(USAGE, selection.range))


def dearest_threads(selection: Selection, most: int) -> list[tuple[Key, Sums]]:
    """The first of the threads with their actors, dearest first; rollups are ranked by the database.

    Whatever is not among its dearest can only get there by a row that is read live: those threads are summed as well.
    Filters that tell calls apart are answered from the ledger alone.
    """
    some, by = thread_parts(selection), ("thread_id", "actor_ref")
    found: dict[Key, Sums] = {}
    live = created_in(UsageEntry.objects.using(database()), some.live).filter(selection.q())
    if some.live:
        _merge(found, live, by, {name: MEASURES[name] for name in THREAD})
    if some.rolled:
        rows = ThreadUsageRollup.objects.using(database()).filter(some.rolled_q(), selection.q("actor", "tenant_ref"))
        ranked: dict[Key, Sums] = {}
        _merge(ranked, rows, by, rolled(THREAD), ("-sum_cost_nanos", "thread_id"), most + len(found))
        if found:
            _merge(found, rows.filter(thread_id__in=live.order_by().values("thread_id")), by, rolled(THREAD))
        found = ranked | found
    return sorted(found.items(), key=lambda item: (-item[1]["cost_nanos"], item[0]))[:most]


def thread_parts(selection: Selection) -> Parts:
    coarse = not selection.has("agent", "model", "purpose")
    return parts(USAGE, selection.range) if coarse else base_alone(selection.range)


def total(sums: Iterable[Sums], names: Iterable[str] = MEASURES) -> Sums:
    found = dict.fromkeys(names, 0)
    for each in sums:
        for name in found:
            found[name] += each[name]
    return found


def thread_counts(selection: Selection, *, by_actor: bool) -> dict[str | None, int]:
    """How many threads were used in the range, by actor or (under None) in all; each once.

    A rollup row without an earlier day in the range is its thread's first. Of the threads of days that are read live
    those are left out that a rollup has counted.
    """
    some = thread_parts(selection)
    counts: dict[str | None, int] = {}
    live = created_in(UsageEntry.objects.using(database()), some.live).filter(selection.q()).order_by()
    if some.rolled:
        rows = ThreadUsageRollup.objects.using(database()).filter(some.rolled_q(), selection.q("actor", "tenant_ref"))
        first = rows.filter(Q(previous_day=None) | Q(previous_day__lt=selection.range.first)).order_by()
        _add(counts, _counted(first, "pk", by_actor=by_actor))
        if some.live:
            _add(counts, _counted_live(live, rows, selection, by_actor=by_actor))
    else:
        _add(counts, _counted(live, "thread_id", by_actor=by_actor))
    return counts


def _counted(rows: QuerySet[Any], column: str, *, by_actor: bool) -> Iterable[tuple[str | None, int]]:
    number = Count(column, distinct=column != "pk")
    if not by_actor:
        return [(None, int(rows.aggregate(number=number)["number"]))]
    grouped = rows.values("actor_ref").annotate(number=number)
    return [(row["actor_ref"], row["number"]) for row in grouped]


def _counted_live(
    live: QuerySet[UsageEntry], rows: QuerySet[ThreadUsageRollup], selection: Selection, *, by_actor: bool
) -> Iterable[tuple[str | None, int]]:
    earlier = rows.filter(thread_id__in=live.values("thread_id")).order_by().values("thread_id")
    rolled_first: dict[str, date] = dict(earlier.annotate(first=Min("day")).values_list("thread_id", "first"))
    for thread_id, actor_ref, at in live.values_list("thread_id", "actor_ref").annotate(at=Min("created_at")):
        before = rolled_first.get(thread_id)
        if before is None or before > today(selection.range.zone, at):
            yield (actor_ref if by_actor else None), 1


def actor_count(selection: Selection) -> int:
    """How many people used anything in the range."""
    some = parts(USAGE, selection.range)
    live = created_in(UsageEntry.objects.using(database()), some.live).filter(selection.q()).order_by()
    if not some.rolled:
        return live.aggregate(number=Count("actor_ref", distinct=True))["number"] or 0
    rolled_rows = UsageRollup.objects.using(database()).filter(some.rolled_q(), selection.q()).order_by()
    people = rolled_rows.values("actor_ref").distinct()
    return people.union(live.values("actor_ref").distinct()).count() if some.live else people.count()


def _summed(
    selection: Selection, by: Sequence[str], measures: Sequence[str], table: type[models.Model], some: Parts
) -> dict[Key, Sums]:
    found: dict[Key, Sums] = {}
    if some.rolled:
        rows = table._default_manager.using(database()).filter(some.rolled_q(), selection.q())
        _merge(found, rows, by, rolled(tuple(measures)))
    if some.live:
        entries = created_in(UsageEntry.objects.using(database()), some.live).filter(selection.q())
        names = [*by]
        if DAY in by:
            entries = entries.annotate(day_number=_day_number(selection, some))
            names[names.index(DAY)] = "day_number"
        _merge(found, entries, names, {name: MEASURES[name] for name in measures}, days=selection)
    return found


def _merge(
    found: dict[Key, Sums],
    rows: QuerySet[Any],
    by: Sequence[str],
    measures: Mapping[str, models.Expression],
    order: Sequence[str] = (),
    most: int | None = None,
    *,
    days: Selection | None = None,
) -> None:
    sums = {f"sum_{name}": expression for name, expression in measures.items()}
    grouped: Iterable[Mapping[str, Any]]
    grouped = rows.order_by().values(*by).annotate(**sums).order_by(*order)[:most] if by else [rows.aggregate(**sums)]
    for row in grouped:
        key = tuple(_key(row[name], name, days) for name in by)
        mine = found.setdefault(key, dict.fromkeys(measures, 0))
        for name in measures:
            mine[name] += int(row[f"sum_{name}"] or 0)


def _key(value: Any, name: str, days: Selection | None) -> Any:  # noqa: ANN401  (whatever a dimension holds)
    if name == "day_number" and days is not None:
        return date.fromordinal(value)
    return value


def _day_number(selection: Selection, some: Parts) -> models.Expression:
    """The day on which a row was created, as its ordinal: bounds are instants, the database knows no zone."""
    zone = selection.range.zone
    days = [day for day in selection.range.days() if day not in some.rolled]
    return _halved([(day.toordinal(), start_of(day, zone)) for day in days])


def _halved(bounds: Sequence[tuple[int, datetime]]) -> models.Expression:
    """A search by halves: a year of days is told apart by nine comparisons."""
    if len(bounds) == 1:
        return Value(bounds[0][0], output_field=IntegerField())
    middle = len(bounds) // 2
    earlier = When(created_at__lt=bounds[middle][1], then=_halved(bounds[:middle]))
    return Case(earlier, default=_halved(bounds[middle:]), output_field=IntegerField())


def _add(counts: dict[str | None, int], more: Iterable[tuple[str | None, int]]) -> None:
    for key, number in more:
        counts[key] = counts.get(key, 0) + number
