"""What tools were called, how often they failed, how long they took, and their list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Q, QuerySet, Sum

from agent.domain.states import EXECUTED_TOOL_CALL, OPEN_TOOL_CALL, ToolCallStatus
from agent.models import ToolCall
from governance.base import created_in, genuine_calls
from governance.days import today
from governance.histograms import merged
from governance.models import ToolRollup
from governance.queries.paging import LATEST_DEFAULT, LATEST_MOST, Ask, Field, Order, Where, narrowed, page_of
from governance.queries.parts import Parts, base_alone, parts
from governance.queries.percentiles import Durations, day_histograms, reads_whole_days
from governance.queries.records import ToolCallRow, ToolStats
from governance.queries.runs import of_run
from governance.queries.selection import Selection
from governance.queries.values import Page
from governance.reading import one_view
from governance.rollups.building import tool_key
from governance.rollups.marks import TOOL, database

NEWEST = Order(columns=("created_at", "id"))
FIELDS: Mapping[str, Field] = {
    "toolName": "tool_name",
    "toolType": "tool_type",
    "status": "status",
    "threadId": "thread_id",
    "runId": "run_id",
    "actorRef": "actor_ref",
    "agentName": "agent_name",
    "tenantRef": "tenant_ref",
}
NAMES: Mapping[str, str] = {"tool_call_id": "id", "decided_by": "executed_by_ref"}
Tool = tuple[str, str]


def tool_stats(selection: Selection) -> list[ToolStats]:
    with one_view():
        some = _parts(selection)
        counts: dict[Tool, Counter[str]] = {}
        took: dict[Tool, list[int]] = {}
        for name, kind, status, number in _rolled(selection, some):
            counts.setdefault((name, kind), Counter())[status] += number
        for name, kind, status, execution_ms in _live(selection, some):
            counts.setdefault((name, kind), Counter())[status] += 1
            if execution_ms is not None:
                took.setdefault((name, kind), []).append(execution_ms)
        rolled = _histograms(selection, some)
    rows = [_stats(tool, of, rolled, took.get(tool, [])) for tool, of in counts.items()]
    return sorted(rows, key=lambda row: (-row.calls, row.tool_name, row.tool_type))


def recent_tool_calls(selection: Selection, limit: int = LATEST_DEFAULT) -> Sequence[ToolCallRow]:
    """The newest of them all, whatever the range."""
    rows = listed(_base(selection)).order_by(*NEWEST.clauses)[: min(limit, LATEST_MOST)]
    return call_rows(list(rows), text=selection.text)


def tool_calls_page(selection: Selection, where: Where | None = None, ask: Ask | None = None) -> Page[ToolCallRow]:
    asked, conditions = narrowed(selection, where or {}, FIELDS)
    rows = created_in(_base(asked), [asked.range.span]).filter(conditions)
    with one_view():
        return page_of(listed(rows), NEWEST, ask or Ask(), lambda some: call_rows(some, text=asked.text))


SHOWN = tuple(NAMES.get(name, name) for name in ToolCallRow.__dataclass_fields__)


def listed(rows: QuerySet[ToolCall]) -> QuerySet[ToolCall, dict[str, Any]]:
    found: QuerySet[ToolCall, dict[str, Any]] = rows.values(*SHOWN)
    return found


def call_rows(rows: Sequence[Mapping[str, Any]], *, text: bool) -> list[ToolCallRow]:
    names = ToolCallRow.__dataclass_fields__
    made = [{name: row[NAMES.get(name, name)] for name in names} for row in rows]
    # A call that nobody had to decide names its run's actor in that column, who decided nothing.
    for row in made:
        row["decided_by"] = row["decided_by"] if row["decision"] is not None else None
        row["error"] = row["error"] if text else None
    return [ToolCallRow(**row) for row in made]


def _base(selection: Selection) -> QuerySet[ToolCall]:
    rows = genuine_calls(ToolCall.objects.using(database())).filter(selection.q("tenant_ref", "agent", "actor"))
    return rows.filter(of_run(selection, "run_id"))


def _parts(selection: Selection) -> Parts:
    coarse = not selection.has("model", "actor", "purpose")
    return parts(TOOL, selection.range) if coarse else base_alone(selection.range)


def _rolled(selection: Selection, some: Parts) -> Iterator[tuple[str, str, str, int]]:
    if not some.rolled:
        return
    rows = ToolRollup.objects.using(database()).filter(some.rolled_q(), selection.q("tenant_ref", "agent")).order_by()
    for row in rows.values("tool_name", "tool_type", "status").annotate(number=Sum("calls")):
        yield row["tool_name"], row["tool_type"], row["status"], int(row["number"])


def _live(selection: Selection, some: Parts) -> Iterator[tuple[str, str, str, int | None]]:
    """Calls that no rollup holds: of the other days, and those of built days that settled after the cut."""
    columns = ("tool_name", "tool_type", "status", "execution_ms")
    rows = _base(selection).order_by()
    if some.live:
        yield from created_in(rows, some.live).values_list(*columns).iterator()
    if some.cut is not None:
        late = created_in(rows, [selection.range.span]).filter(Q(settled_at=None) | Q(settled_at__gte=some.cut))
        for at, settled, *rest in late.values_list("created_at", "settled_at", *columns).iterator():
            day = today(selection.range.zone, at)
            if day in some.rolled and (settled is None or settled >= some.rolled[day]):
                name, kind, status, took = rest
                yield name, kind, status, took


def _histograms(selection: Selection, some: Parts) -> Mapping[str, Mapping[str, int]] | None:
    """By tool; None where no rollup takes part."""
    if not some.rolled:
        return None
    if reads_whole_days(selection):
        return day_histograms(TOOL, some)
    rows = ToolRollup.objects.using(database()).filter(some.rolled_q(), selection.q("tenant_ref", "agent")).order_by()
    found: dict[str, list[Mapping[str, int]]] = {}
    for name, kind, counts in rows.values_list("tool_name", "tool_type", "execution_histogram").iterator():
        found.setdefault(tool_key(name, kind), []).append(counts)
    return {key: merged(each) for key, each in found.items()}


def _stats(
    tool: Tool, counts: Counter[str], rolled: Mapping[str, Mapping[str, int]] | None, took: Sequence[int]
) -> ToolStats:
    executed = sum(counts[status] for status in EXECUTED_TOOL_CALL)
    failed = counts[ToolCallStatus.FAILED]
    durations = Durations(rolled=None if rolled is None else rolled.get(tool_key(*tool), {}), exact=took)
    return ToolStats(
        tool_name=tool[0],
        tool_type=tool[1],
        calls=sum(counts.values()),
        executed=executed,
        failed=failed,
        rejected=counts[ToolCallStatus.REJECTED],
        expired=counts[ToolCallStatus.EXPIRED],
        pending=sum(counts[status] for status in OPEN_TOOL_CALL),
        failure_rate=failed / (executed + failed) if executed + failed else None,
        p50_execution_ms=durations.at(0.5),
        p95_execution_ms=durations.at(0.95),
        percentiles="exact" if rolled is None else "approximate",
    )
