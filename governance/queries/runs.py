"""Whether it worked: runs by day, agent and error, how long they took, and their list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from agent.domain.states import OPEN_RUN, RunStatus
from agent.models import Run, UsageEntry
from governance.base import begun_in
from governance.days import today
from governance.histograms import Histogram, merged
from governance.models import RunRollup
from governance.queries.paging import LATEST_DEFAULT, LATEST_MOST, Ask, Field, Order, Where, narrowed, page_of
from governance.queries.parts import Parts, base_alone, parts
from governance.queries.percentiles import Durations, day_histograms, reads_whole_days
from governance.queries.records import AgentRuns, DayRuns, ErrorCount, Reliability, RunMetrics, RunRow
from governance.queries.selection import Selection
from governance.queries.usage import cost_fields, costs_by
from governance.queries.values import Page
from governance.reading import one_view
from governance.rollups.marks import RUN, database

ENDED = (RunStatus.COMPLETED, RunStatus.FAILED)
ERROR_SHOWN = 500
NEWEST = Order(columns=("begun_at", "id"))
FIELDS: Mapping[str, Field] = {
    "agentName": "agent_name",
    "status": "status",
    "errorCode": "error_code",
    "threadId": "thread_id",
    "actorRef": "actor_ref",
    "tenantRef": "tenant_ref",
    "modelId": "model_id",
    "parentRunId": "parent_run_id",
    "promptHash": "prompt_hash",
}


@dataclass(frozen=True, slots=True)
class Bucket:
    """Runs that are alike, and how many there are."""

    day: date | None
    agent_name: str | None
    status: str
    error_code: str | None
    runs: int
    retries: int
    duration_ms: int | None = None  # of one run
    active_ms: int | None = None


def run_metrics(selection: Selection) -> RunMetrics:
    with one_view():
        some = _parts(selection)
        live = list(_live(selection, some))
        return _metrics(selection, some, [*_rolled(selection, some, "status"), *live], live)


def runs_by_agent(selection: Selection) -> list[AgentRuns]:
    with one_view():
        return _by_agent(_buckets(selection, "agent_name", "status"))


def run_errors(selection: Selection) -> list[ErrorCount]:
    with one_view():
        return _errors(_buckets(selection, "status", "error_code"))


def run_trend(selection: Selection) -> list[DayRuns]:
    with one_view():
        return _trend(selection, _buckets(selection, "day", "status"))


def reliability(selection: Selection) -> Reliability:
    """Every cut in one view."""
    with one_view():
        some = _parts(selection)
        live = list(_live(selection, some))
        found = [*_rolled(selection, some, "agent_name", "status", "error_code"), *live]
        return Reliability(
            metrics=_metrics(selection, some, found, live),
            by_agent=_by_agent(found),
            errors=_errors(found),
            trend=_trend(selection, [*_rolled(selection, some, "day", "status"), *live]),
        )


def recent_runs(selection: Selection, limit: int = LATEST_DEFAULT) -> Sequence[RunRow]:
    """The newest of them all, whatever the range."""
    with one_view():
        rows = listed(_base(selection)).order_by(*NEWEST.clauses)[: min(limit, LATEST_MOST)]
        return run_rows(list(rows), text=selection.text)


def runs_page(selection: Selection, where: Where | None = None, ask: Ask | None = None) -> Page[RunRow]:
    asked, conditions = narrowed(selection, where or {}, FIELDS)
    span = asked.range.span
    rows = begun_in(_base(asked), [span]).filter(conditions)
    # The same once more by the column of the order, whose index bounds the list where it begins and where it ends.
    rows = rows.alias(at=Coalesce("started_at", "created_at")).filter(at__gte=span.start, at__lt=span.end)
    with one_view():
        return page_of(listed(rows), NEWEST, ask or Ask(), lambda some: run_rows(some, text=asked.text))


def run_rows(rows: Sequence[Mapping[str, Any]], *, text: bool) -> list[RunRow]:
    """Runs as they are listed, with what each has cost by itself."""
    costs = costs_by("run_id", [row["id"] for row in rows])
    made = [_row(row, text=text) | cost_fields(costs.get(row["id"])) for row in rows]
    return [RunRow(**each) for each in made]


SHOWN = tuple(name for name in RunRow.__dataclass_fields__ if name not in {"run_id", "cost_nanos", "unpriced_requests"})


def listed(rows: QuerySet[Run]) -> QuerySet[Run, dict[str, Any]]:
    """The columns of a list of runs, with when each began or was admitted."""
    begun_at = Coalesce("started_at", "created_at")
    found: QuerySet[Run, dict[str, Any]] = rows.annotate(begun_at=begun_at).values("id", "begun_at", *SHOWN)
    return found


def _row(row: Mapping[str, Any], *, text: bool) -> dict[str, Any]:
    message = row["error_message"]
    shown = {name: row[name] for name in SHOWN} | {"run_id": row["id"]}
    return shown | {"error_message": message[:ERROR_SHOWN] if text and message is not None else None}


def purpose_of(selection: Selection, column: str) -> Q:
    """Runs, calls or threads with a ledger row of the purpose that is asked for."""
    if not selection.has("purpose"):
        return Q()
    inner = "run_id" if column != "thread_id" else "thread_id"
    return Q(Exists(UsageEntry.objects.filter(selection.q("purpose"), **{inner: OuterRef(column)})))


def of_run(selection: Selection, column: str) -> Q:
    """What belongs to a run of the model, and with a ledger row of the purpose, that are asked for."""
    found = purpose_of(selection, column)
    if selection.has("model"):
        found &= Q(Exists(Run.objects.filter(selection.q("model"), pk=OuterRef(column))))
    return found


def _base(selection: Selection) -> QuerySet[Run]:
    rows = Run.objects.using(database()).filter(selection.q("tenant_ref", "agent", "model", "actor"))
    return rows.filter(purpose_of(selection, "pk"))


def _parts(selection: Selection) -> Parts:
    coarse = not selection.has("model", "actor", "purpose")
    return parts(RUN, selection.range) if coarse else base_alone(selection.range)


def _buckets(selection: Selection, *by: str) -> list[Bucket]:
    some = _parts(selection)
    return [*_rolled(selection, some, *by), *_live(selection, some)]


def _rolled(selection: Selection, some: Parts, *by: str) -> Iterator[Bucket]:
    """What the rollups hold: summed in the database over all but the named columns."""
    if not some.rolled:
        return
    rows = RunRollup.objects.using(database()).filter(some.rolled_q(), selection.q("tenant_ref", "agent")).order_by()
    nothing = {"day": None, "agent_name": None, "error_code": None}
    for row in rows.values(*by).annotate(sum_runs=Sum("runs"), sum_retries=Sum("retries")):
        place = nothing | {name: row[name] for name in by}
        yield Bucket(**place, runs=int(row["sum_runs"]), retries=int(row["sum_retries"]))


def _live(selection: Selection, some: Parts) -> Iterator[Bucket]:
    """Runs that no rollup holds: those of the other days, and those of built days that settled after the cut."""
    columns = ("agent_name", "status", "error_code", "retries", "duration_ms", "active_ms")
    rows = _base(selection).annotate(begun_at=Coalesce("started_at", "created_at")).order_by()
    zone = selection.range.zone
    if some.live:
        for at, *rest in begun_in(rows, some.live).values_list("begun_at", *columns).iterator():
            yield _bucket(today(zone, at), *rest)
    if some.cut is not None:
        late = begun_in(rows, [selection.range.span]).filter(Q(settled_at=None) | Q(settled_at__gte=some.cut))
        for at, settled, *rest in late.values_list("begun_at", "settled_at", *columns).iterator():
            day = today(zone, at)
            if day in some.rolled and (settled is None or settled >= some.rolled[day]):
                yield _bucket(day, *rest)


def _bucket(day: date, agent: str | None, status: str, error: str | None, *rest: int | None) -> Bucket:
    retries, duration, active = rest
    return Bucket(day, agent, status, error, 1, retries or 0, duration, active)


def _metrics(selection: Selection, some: Parts, found: Iterable[Bucket], live: Iterable[Bucket]) -> RunMetrics:
    counts, retries = Counter[str](), 0
    for each in found:
        counts[each.status] += each.runs
        retries += each.retries
    ended = [each for each in live if each.status in ENDED]
    rolled = _histograms(selection, some)
    took, active = (
        Durations(
            rolled=None if rolled is None else rolled[name],
            exact=[ms for one in ended if (ms := getattr(one, f"{name}_ms")) is not None],
        )
        for name in ("duration", "active")
    )
    return RunMetrics(
        runs=sum(counts.values()),
        **_ended(counts),
        open=sum(counts[status] for status in OPEN_RUN),
        success_rate=_rate(counts),
        retries=retries,
        duration_p50_ms=took.at(0.5),
        duration_p95_ms=took.at(0.95),
        active_p50_ms=active.at(0.5),
        active_p95_ms=active.at(0.95),
        percentiles="approximate" if some.rolled else "exact",
    )


def _histograms(selection: Selection, some: Parts) -> Mapping[str, Histogram] | None:
    """Of the runs that ended by themselves; None where no rollup takes part."""
    if not some.rolled:
        return None
    if reads_whole_days(selection):
        return {"duration": {}, "active": {}} | day_histograms(RUN, some)
    rows = RunRollup.objects.using(database()).filter(some.rolled_q(), selection.q("tenant_ref", "agent"))
    ended = list(rows.filter(status__in=ENDED).values_list("duration_histogram", "active_histogram"))
    return {"duration": merged(row[0] for row in ended), "active": merged(row[1] for row in ended)}


def _ended(counts: Mapping[str, int]) -> dict[str, int]:
    return {
        "completed": counts.get(RunStatus.COMPLETED, 0),
        "failed": counts.get(RunStatus.FAILED, 0),
        "cancelled": counts.get(RunStatus.CANCELLED, 0),
    }


def _rate(counts: Mapping[str, int]) -> float | None:
    """What was cancelled, and what is still open, is neither a success nor a failure."""
    completed, failed = counts.get(RunStatus.COMPLETED, 0), counts.get(RunStatus.FAILED, 0)
    return completed / (completed + failed) if completed + failed else None


def _by_agent(found: Iterable[Bucket]) -> list[AgentRuns]:
    counts: dict[str | None, Counter[str]] = {}
    retries: Counter[str | None] = Counter()
    for each in found:
        counts.setdefault(each.agent_name, Counter())[each.status] += each.runs
        retries[each.agent_name] += each.retries
    rows = [
        AgentRuns(agent_name=name, runs=sum(of.values()), **_ended(of), success_rate=_rate(of), retries=retries[name])
        for name, of in counts.items()
    ]
    return sorted(rows, key=lambda row: (-row.runs, row.agent_name is not None, row.agent_name or ""))


def _errors(found: Iterable[Bucket]) -> list[ErrorCount]:
    counts: Counter[str | None] = Counter()
    for each in found:
        if each.status == RunStatus.FAILED:
            counts[each.error_code] += each.runs
    rows = [ErrorCount(error_code=code, count=number) for code, number in counts.items()]
    return sorted(rows, key=lambda row: (-row.count, row.error_code is not None, row.error_code or ""))


def _trend(selection: Selection, found: Iterable[Bucket]) -> list[DayRuns]:
    counts: dict[date | None, Counter[str]] = {}
    for each in found:
        counts.setdefault(each.day, Counter())[each.status] += each.runs
    nothing: Counter[str] = Counter()
    return [
        DayRuns(day=day, runs=sum(counts.get(day, nothing).values()), **_ended(counts.get(day, nothing)))
        for day in selection.range.days()
    ]
