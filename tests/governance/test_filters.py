"""Every filter holds for every figure: each is counted again, row by row, and by rollups and by base rows alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest

from agent.domain.states import OPEN_RUN
from agent.models import Run, Thread, ToolCall, UsageEntry
from governance import queries
from governance.days import DayRange
from governance.queries import Ask, Selection
from governance.queries.live import open_runs
from governance.rollups import rebuild
from governance.sample import Sample, make

LAST = date(2026, 6, 20)
NOW = datetime(2026, 6, 20, 15, 0, tzinfo=UTC)
RANGE = DayRange(first=date(2026, 5, 20), last=LAST, zone=UTC)
COLUMNS = {"tenant_ref": "tenant_ref", "agent": "agent_name", "actor": "actor_ref", "model": "model_id"}
FILTERS = [
    {},
    {"tenant_ref": "north"},
    {"tenant_ref": "(none)"},
    {"agent": "shop"},
    {"model": "large-4"},
    {"actor": "somebody"},
    {"purpose": "history_summary"},
    {"purpose": "chat", "agent": "shop"},
    {"tenant_ref": "north", "model": "large-4", "purpose": "chat"},
    {"model": "of-nobody"},
]


class Counted:
    """What a filter leaves, told from the rows alone."""

    def __init__(self, filters: dict[str, str]) -> None:
        self.filters = {name: None if value == "(none)" else value for name, value in filters.items()}
        self.runs = {run.pk: run for run in Run.objects.all()}
        self.purposes: dict[str, set[str]] = {}
        for row in UsageEntry.objects.all():
            for key in (row.run_id, row.thread_id):
                self.purposes.setdefault(str(key), set()).add(row.purpose)

    def has(self, row: Any, *columns: str) -> bool:
        wanted = {name: self.filters[name] for name in columns if name in self.filters}
        return all(getattr(row, COLUMNS[name]) == value for name, value in wanted.items())

    def of_run(self, row: Any, run_id: str | None) -> bool:
        purpose, run = self.filters.get("purpose"), self.runs.get(str(run_id))
        fits = "model" not in self.filters or (run is not None and run.model_id == self.filters["model"])
        return fits and (purpose is None or purpose in self.purposes.get(str(run_id), ()))

    def entries(self) -> list[UsageEntry]:
        purpose = self.filters.get("purpose")
        return [
            row
            for row in UsageEntry.objects.all()
            if in_range(row.created_at) and self.has(row, *COLUMNS) and purpose in (None, row.purpose)
        ]

    def found_runs(self) -> list[Run]:
        kept = [run for run in self.runs.values() if in_range(run.started_at or run.created_at)]
        return [run for run in kept if self.has(run, *COLUMNS) and self.of_run(run, run.pk)]

    def calls(self, at: str = "created_at") -> list[ToolCall]:
        own = ("tenant_ref", "agent", "actor")
        kept = [call for call in ToolCall.objects.all() if in_range(getattr(call, at)) and call.run_id is not None]
        return [call for call in kept if self.has(call, *own) and self.of_run(call, call.run_id)]

    def threads(self) -> list[Thread]:
        runs = [run for run in self.runs.values() if self.has(run, "agent", "model")]
        ids, purpose = {run.thread_id for run in runs}, self.filters.get("purpose")
        kept = [thread for thread in Thread.objects.filter(transient=False) if in_range(thread.updated_at)]
        return [
            thread
            for thread in kept
            if self.has(thread, "tenant_ref", "actor")
            and (thread.pk in ids or not {"agent", "model"} & self.filters.keys())
            and (purpose is None or purpose in self.purposes.get(thread.pk, ()))
        ]


def in_range(at: datetime | None) -> bool:
    return at is not None and RANGE.span.start <= at < RANGE.span.end


@pytest.fixture
def sample(db: None) -> None:
    """A month of everything; some calls wait, some runs are open."""
    make(Sample(rows=240, seed=3, days=45, last=LAST, until=NOW))
    actions = ToolCall.objects.filter(tool_type="action").order_by("created_at")
    waiting = [call.pk for call in actions[::3]]
    ToolCall.objects.filter(pk__in=waiting).update(status="pending_approval", decision=None, settled_at=None)
    busy = [run.pk for run in Run.objects.order_by("created_at")[::7]]
    Run.objects.filter(pk__in=busy).update(status="running", settled_at=None, duration_ms=None)


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_every_filter_holds_for_every_figure(sample: None, filters: dict[str, str]) -> None:
    if "actor" in filters:
        filters = {"actor": str(UsageEntry.objects.order_by("pk")[7].actor_ref)}
    counted, asked = Counted(filters), Selection.of(RANGE, filters)
    before = figures(asked)
    assert before == wanted(counted)
    assert filters or all(before.values()), "the sample shows nothing"
    for _ in rebuild():
        pass
    assert figures(asked) == before


def figures(asked: Selection) -> dict[str, object]:
    spent, runs = queries.spend_overview(asked), queries.reliability(asked)
    cuts: Sequence[Sequence[Any]] = (
        spent.by_model,
        spent.by_actor,
        spent.by_agent,
        spent.by_purpose,
        spent.by_tenant,
        queries.spend_by_model(asked),
        queries.spend_by_actor(asked),
        queries.spend_by_agent(asked),
        queries.spend_by_purpose(asked),
        queries.spend_by_tenant(asked),
        spent.trend,
        queries.usage_trend(asked),
    )
    costs = {sum(row.cost_nanos or 0 for row in cut) for cut in cuts}
    costs |= {spent.summary.cost_nanos or 0, queries.spend_summary(asked).cost_nanos or 0}
    pages: dict[str, Callable[..., Any]] = {
        "ledger": queries.usage_page,
        "runs": queries.runs_page,
        "calls": queries.tool_calls_page,
        "threads": queries.threads_page,
        "waiting": queries.approvals_page,
        "decided": queries.decisions_page,
    }
    return {
        "costs": costs,
        "requests": spent.summary.requests,
        "dearest": {row.thread_id for row in queries.spend_by_thread(asked, 200)},
        "run figures": {
            runs.metrics.runs,
            queries.run_metrics(asked).runs,
            sum(row.runs for row in runs.by_agent),
            sum(row.runs for row in queries.runs_by_agent(asked)),
            sum(row.runs for row in runs.trend),
            sum(row.runs for row in queries.run_trend(asked)),
        },
        "failed": {
            runs.metrics.failed,
            sum(row.count for row in runs.errors),
            sum(row.count for row in queries.run_errors(asked)),
        },
        "tool calls": sum(row.calls for row in queries.tool_stats(asked)),
        "open": sum(open_runs(asked).values()),
        "oldest": {row.tool_call_id for row in queries.pending_approvals(asked, 200)},
        "pages": {name: page(asked, {}, Ask(limit=200)).total for name, page in pages.items()},
    }


def wanted(counted: Counted) -> dict[str, object]:
    entries, runs, calls = counted.entries(), counted.found_runs(), counted.calls()
    alive = set(Thread.objects.filter(deleted_at=None).values_list("pk", flat=True))
    own = ("tenant_ref", "agent", "actor")
    asked = ToolCall.objects.filter(status="pending_approval", decision=None)
    waiting = [call for call in asked if counted.has(call, *own) and counted.of_run(call, call.run_id)]
    decided = [call for call in counted.calls("decided_at") if call.decision is not None]
    busy = [run for run in counted.runs.values() if run.status in OPEN_RUN]
    busy = [run for run in busy if counted.has(run, *COLUMNS) and counted.of_run(run, run.pk)]
    return {
        "costs": {sum(row.cost_nanos or 0 for row in entries)},
        "requests": len(entries),
        "dearest": {row.thread_id for row in entries} & alive,
        "run figures": {len(runs)},
        "failed": {sum(run.status == "failed" for run in runs)},
        "tool calls": len(calls),
        "open": len(busy),
        "oldest": {call.pk for call in waiting},
        "pages": {
            "ledger": len(entries),
            "runs": len(runs),
            "calls": len(calls),
            "threads": len(counted.threads()),
            "waiting": len(waiting),
            "decided": len(decided),
        },
    }
