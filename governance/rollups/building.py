"""Building a day: its base rows grouped in SQL, its bucket deleted and inserted, its mark set, in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

from django.db import models
from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from agent.conf import agent_settings
from agent.domain.canonical import sha256_hex
from agent.domain.states import RunStatus
from agent.models import Run, ToolCall, UsageEntry
from governance.base import begun_in, created_in, genuine_calls
from governance.days import Span, last_closed, span_of, today
from governance.histograms import bucket, merged
from governance.measures import MEASURES, THREAD_MEASURES
from governance.models import RunRollup, ThreadUsageRollup, ToolRollup, UsageDayRollup, UsageRollup
from governance.rollups.marks import CLEAN, RUN, TOOL, USAGE, database, locked, written, zone_name

SETTLING = timedelta(minutes=5)  # what was stamped so long ago is committed
BATCH = 900  # rows at a time; SQLite takes no more names in a statement
ACTOR_DIMENSIONS = ("tenant_ref", "actor_ref", "agent_name", "model_id", "purpose")
DAY_DIMENSIONS = ("tenant_ref", "agent_name", "model_id", "purpose")
THREAD_DIMENSIONS = ("thread_id", "tenant_ref", "actor_ref")
RUN_DIMENSIONS = ("tenant_ref", "agent_name", "status", "error_code")
TOOL_DIMENSIONS = ("tenant_ref", "agent_name", "tool_name", "tool_type", "status")

ENDED = (RunStatus.COMPLETED, RunStatus.FAILED)

Row = dict[str, Any]
Built = tuple[int, dict[str, Any] | None]  # how many base rows, and the durations of the whole day
M = TypeVar("M", bound=models.Model)


def build(kind: str, day: date, *, now: datetime | None = None) -> bool:
    """Build one closed day of a kind, safe beside writers and other builders; False for a day that is not closed."""
    zone, now = agent_settings().report_time_zone, now or timezone.now()
    if day > last_closed(zone, now):
        return False
    span, cut = span_of(day, zone), now - SETTLING
    with written():
        # Under the day's mark: whoever changes rows of this day marks it in the same transaction, so either waits for
        # us and leaves it dirty, or was first and is read.
        mark = locked(kind, day)
        mark.source_rows, mark.histograms = _BUILD[kind](day, span, cut)
        mark.state, mark.cut, mark.built_at, mark.time_zone = CLEAN, cut, now, zone_name()
        if kind == USAGE:
            mark.cut = min(cut, span.end)
        mark.save()
    return True


def _build_usage(day: date, span: Span, cut: datetime) -> Built:
    entries = created_in(UsageEntry.objects.using(database()), [span])
    by_day: dict[Hashable, Row] = {}
    actors: dict[Hashable, set[str]] = defaultdict(set)

    def by_actor() -> Iterator[Row]:
        for row in _grouped(entries, ACTOR_DIMENSIONS, MEASURES):
            place = tuple(row[name] for name in DAY_DIMENSIONS)
            actors[place].add(row["actor_ref"])
            total = by_day.setdefault(place, {name: row[name] for name in DAY_DIMENSIONS} | dict.fromkeys(MEASURES, 0))
            for name in MEASURES:
                total[name] += row[name]
            yield row

    _replace(UsageRollup, day, ACTOR_DIMENSIONS, by_actor())
    counted = (row | {"actors": len(actors[place])} for place, row in by_day.items())
    _replace(UsageDayRollup, day, DAY_DIMENSIONS, counted)
    threads = _grouped(entries, THREAD_DIMENSIONS, THREAD_MEASURES)
    _replace(ThreadUsageRollup, day, THREAD_DIMENSIONS, _with_previous_day(threads, span.start))
    return sum(row["requests"] for row in by_day.values()), None


def _with_previous_day(rows: Iterator[Row], start: datetime) -> Iterator[Row]:
    """Threads with the last day before this one on which they were used: the ledger's past does not change."""
    zone = agent_settings().report_time_zone
    entries = UsageEntry.objects.using(database()).filter(created_at__lt=start).order_by()
    while some := list(islice(rows, BATCH)):
        earlier = entries.filter(thread_id__in=[row["thread_id"] for row in some]).values("thread_id")
        last = dict(earlier.annotate(at=Max("created_at")).values_list("thread_id", "at"))
        for row in some:
            at = last.get(row["thread_id"])
            yield row | {"previous_day": None if at is None else today(zone, at)}


def _build_runs(day: date, span: Span, cut: datetime) -> Built:
    runs = begun_in(Run.objects.using(database()), [span]).filter(settled_at__lt=cut)
    buckets: dict[tuple[Any, ...], Row] = {}
    columns = (*RUN_DIMENSIONS, "retries", "duration_ms", "active_ms")
    for values in runs.order_by().values_list(*columns).iterator(chunk_size=BATCH):
        *place, retries, duration, active = values
        row = buckets.setdefault(
            tuple(place),
            dict(zip(RUN_DIMENSIONS, place, strict=True))
            | {"runs": 0, "retries": 0, "duration_histogram": {}, "active_histogram": {}},
        )
        row["runs"] += 1
        row["retries"] += retries
        _count(row["duration_histogram"], duration)
        _count(row["active_histogram"], active)
    _replace(RunRollup, day, RUN_DIMENSIONS, buckets.values())
    ended = [row for row in buckets.values() if row["status"] in ENDED]
    whole = {name: merged(row[f"{name}_histogram"] for row in ended) for name in ("duration", "active")}
    return sum(row["runs"] for row in buckets.values()), whole


def _build_tools(day: date, span: Span, cut: datetime) -> Built:
    calls = genuine_calls(created_in(ToolCall.objects.using(database()), [span])).filter(settled_at__lt=cut)
    buckets: dict[tuple[Any, ...], Row] = {}
    timed = calls.order_by().values_list(*TOOL_DIMENSIONS, "execution_ms").annotate(calls=Count("pk"))
    for *place, execution_ms, count in timed.iterator(chunk_size=BATCH):
        row = buckets.setdefault(
            tuple(place), dict(zip(TOOL_DIMENSIONS, place, strict=True)) | {"calls": 0, "execution_histogram": {}}
        )
        row["calls"] += count
        _count(row["execution_histogram"], execution_ms, count)
    _replace(ToolRollup, day, TOOL_DIMENSIONS, buckets.values())
    whole: dict[str, dict[str, int]] = {}
    for bucket_row in buckets.values():
        name = tool_key(bucket_row["tool_name"], bucket_row["tool_type"])
        whole[name] = merged([whole.get(name, {}), bucket_row["execution_histogram"]])
    return sum(row["calls"] for row in buckets.values()), whole


def tool_key(tool_name: str, tool_type: str) -> str:
    """A tool in the histograms of a whole day."""
    return f"{tool_type}:{tool_name}"


_BUILD: Mapping[str, Callable[[date, Span, datetime], Built]] = {
    USAGE: _build_usage,
    RUN: _build_runs,
    TOOL: _build_tools,
}


def _count(counts: dict[str, int], ms: int | None, times: int = 1) -> None:
    if ms is not None:
        name = bucket(ms)
        counts[name] = counts.get(name, 0) + times


def _grouped(
    rows: QuerySet[UsageEntry], dimensions: tuple[str, ...], measures: Mapping[str, models.Expression]
) -> Iterator[Row]:
    """Sums by dimensions, as whole numbers: some databases answer decimals, and nothing for no rows."""
    sums = {f"sum_{name}": expression for name, expression in measures.items()}
    for found in rows.order_by().values(*dimensions).annotate(**sums).iterator(chunk_size=BATCH):
        yield {name: found[name] for name in dimensions} | {name: int(found[f"sum_{name}"] or 0) for name in measures}


def _replace(model: type[M], day: date, dimensions: tuple[str, ...], rows: Iterable[Row]) -> None:
    manager = model._default_manager.using(database())
    manager.filter(day=day).delete()
    some: list[M] = []
    for row in rows:
        key = sha256_hex([row[name] for name in dimensions])
        some.append(model(day=day, key=key, **row))
        if len(some) >= BATCH:
            manager.bulk_create(some)
            some.clear()
    manager.bulk_create(some)
