"""Lists, pages, runs, tools and conversations: what is counted, in which order, and in how many statements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from agent.errors import Invalid, NotAllowed, NotFound
from agent.models import Message, Run, ToolCall, UsageEntry
from governance import queries
from governance.days import DayRange
from governance.histograms import approximate, histogram, nearest_rank
from governance.models import RollupDay
from governance.queries import Ask, Selection
from governance.queries.changes import month_pace
from governance.queries.paging import pages
from governance.queries.values import UsageRow
from governance.rollups import rebuild, roll_up
from governance.sample import Sample, make
from tests.governance import rows
from tests.store.subjects import count_queries

LAST = date(2026, 6, 20)
NOW = datetime(2026, 6, 20, 15, 0, tzinfo=UTC)
RANGE = DayRange(first=date(2026, 5, 20), last=LAST, zone=UTC)


def selection(**filters: str) -> Selection:
    return Selection.of(RANGE, filters)


@pytest.fixture
def sample(db: None) -> None:
    make(Sample(rows=450, seed=3, days=45, last=LAST, until=NOW))


@pytest.mark.parametrize("filters", [{}, {"tenant_ref": "north"}, {"agent": "shop"}, {"model": "large-4"}], ids=str)
def test_runs_and_tools_are_the_same_with_and_without_rollups(sample: None, filters: dict[str, str]) -> None:
    def picture() -> tuple[Any, ...]:
        seen, tools = queries.reliability(selection(**filters)), queries.tool_stats(selection(**filters))
        counts = [(row.tool_name, row.calls, row.executed, row.failed, row.pending, row.failure_rate) for row in tools]
        metrics = seen.metrics
        plain = (metrics.runs, metrics.completed, metrics.failed, metrics.open, metrics.success_rate, metrics.retries)
        return seen.by_agent, seen.errors, seen.trend, plain, counts

    rows.run(NOW - timedelta(days=3), status="running", settled_at=None, duration_ms=None)
    before, exact = picture(), queries.run_metrics(selection(**filters))
    for _ in rebuild():
        pass
    RollupDay.objects.filter(day=date(2026, 6, 2)).update(state="dirty")
    after = queries.run_metrics(selection(**filters))
    if "model" in filters:
        assert after == exact
        return
    assert exact.percentiles == "exact"
    assert after.percentiles == "approximate"
    for name in ("duration_p50_ms", "duration_p95_ms", "active_p50_ms", "active_p95_ms"):
        assert getattr(after, name) == pytest.approx(getattr(exact, name), rel=0.01, abs=1)
    assert before[0]
    assert picture() == before


def test_counts_are_exact_where_runs_settle_after_the_cut(sample: None) -> None:
    while roll_up(now=NOW):
        pass
    before = queries.run_metrics(selection())
    run = rows.run(NOW - timedelta(days=3), status="running", settled_at=None, duration_ms=None)
    assert queries.run_metrics(selection()).open == before.open + 1
    Run.objects.filter(pk=run.pk).update(status="failed", settled_at=NOW, duration_ms=5, error_code="run_failed")
    for _ in range(2):
        seen = queries.run_metrics(selection())
        assert (seen.runs, seen.failed, seen.open) == (before.runs + 1, before.failed + 1, before.open)
        roll_up(now=NOW + timedelta(minutes=10))
    errors = {row.error_code: row.count for row in queries.run_errors(selection())}
    assert errors["run_failed"] >= 1


def test_nothing_is_nothing_and_no_error(db: None) -> None:
    """B118: no division, every day of the trend, rates that are not there."""
    seen = queries.reliability(selection())
    assert (seen.metrics.runs, seen.metrics.success_rate, seen.metrics.duration_p95_ms) == (0, None, None)
    assert [row.runs for row in seen.trend] == [0] * len(RANGE)
    assert queries.tool_stats(selection()) == []
    assert queries.spend_overview(selection()).summary.cost_nanos == 0
    assert queries.usage_page(selection()).total == 0
    assert queries.pending_approvals(selection()) == []


def test_cancelled_and_open_runs_are_not_in_the_rate(db: None) -> None:
    for status in ("completed", "completed", "completed", "failed", "cancelled", "running"):
        rows.run(status=status)
    seen = queries.run_metrics(selection())
    assert (seen.success_rate, seen.cancelled, seen.open) == (0.75, 1, 1)


@pytest.mark.parametrize("values", [[0], [1], [7, 7, 7], [*range(1, 400)], [10**k for k in range(9)]])
def test_percentiles_of_histograms_are_within_one_percent(values: list[int]) -> None:
    for share in (0.01, 0.5, 0.95, 1.0):
        exact = nearest_rank(sorted(values), share)
        assert exact == sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
        told = approximate(histogram(values), share)
        assert told is not None
        assert abs(told - exact) <= 0.01 * exact + 0.5  # whole milliseconds


@pytest.mark.parametrize(
    "query",
    [queries.usage_page, queries.runs_page, queries.threads_page, queries.tool_calls_page, queries.decisions_page],
)
def test_pages_hold_every_row_once_by_number_and_by_cursor(sample: None, query: Callable[..., Any]) -> None:
    def ids(found: Iterator[Any]) -> list[object]:
        return [key_of(row) for row in found]

    everything = ids(pages(lambda ask: query(selection(), {}, ask)))
    assert len(set(everything)) == len(everything) == query(selection()).total > 13
    first, second = (query(selection(), {}, Ask(page=number, limit=7)) for number in (1, 2))
    assert ids(first.rows) + ids(second.rows) == everything[:14]
    by_cursor = query(selection(), {}, Ask(limit=7, cursor=first.next_cursor))
    assert ids(by_cursor.rows) == everything[7:14]
    for bad in ("x", "bnVsbA", "W10", "99999999"):
        with pytest.raises(Invalid, match="cursor"):
            query(selection(), {}, Ask(cursor=bad))
    with pytest.raises(Invalid) as caught:
        query(selection(), {}, Ask(page=51, limit=200))
    assert caught.value.code == "use_cursor"


def key_of(row: Any) -> object:
    if isinstance(row, UsageRow):
        return row.id
    names = ("tool_call_id", "run_id", "id", "thread_id")
    return next(getattr(row, name) for name in names if hasattr(row, name))


def test_unknown_filters_are_refused_by_name_and_impossible_words_match_nothing(sample: None) -> None:
    with pytest.raises(Invalid, match="colour"):
        selection(colour="red")
    with pytest.raises(Invalid, match=r"where\[colour\]"):
        queries.runs_page(selection(), {"colour": "red"})
    with pytest.raises(Invalid, match="fromDay"):
        queries.usage_page(selection(), {"fromDay": "yesterday"})
    assert queries.runs_page(selection(), {"status": "flying"}).total == 0
    unpriced = queries.usage_page(selection(), {"priced": "no"})
    assert unpriced.total == queries.spend_summary(selection()).unpriced_requests
    assert all(row.cost_nanos is None for row in unpriced.rows)
    one = queries.usage_page(selection(), {"fromDay": "2026-06-01", "toDay": "2026-06-01"})
    assert {row.created_at.date() for row in one.rows} == {date(2026, 6, 1)}


def test_only_the_rows_of_the_askers_tenants_are_seen_anywhere(sample: None) -> None:
    asked_for: list[list[str | None]] = [["north"], ["north", None], []]
    for tenants in asked_for:
        asked = Selection.of(RANGE, tenants=tenants)
        spent = queries.spend_overview(asked)
        assert {row.tenant_ref for row in spent.by_tenant} == set(tenants)
        assert {row.tenant_ref for row in queries.usage_page(asked, {}, Ask(limit=200)).rows} == set(tenants)
        assert {row.tenant_ref for row in queries.runs_page(asked, {}, Ask(limit=200)).rows} == set(tenants)
        assert {row.tenant_ref for row in queries.threads_page(asked, {}, Ask(limit=200)).rows} == set(tenants)
        calls = genuine(tenants)
        assert sum(row.calls for row in queries.tool_stats(asked)) == calls
        assert queries.tool_calls_page(asked).total == calls
    foreign = Run.objects.filter(tenant_ref="south").first()
    assert foreign is not None
    with pytest.raises(NotFound):
        queries.run_detail(Selection.of(RANGE, tenants=["north"]), foreign.pk)
    with pytest.raises(NotFound):
        queries.thread_detail(Selection.of(RANGE, tenants=["north"]), foreign.thread_id)


def genuine(tenants: list[str | None]) -> int:
    inside = ToolCall.objects.filter(created_at__gte=RANGE.span.start, created_at__lt=RANGE.span.end)
    return sum(call.tenant_ref in tenants for call in inside)


def test_a_run_is_told_with_its_children_in_six_statements_and_two(db: None) -> None:
    """B110: a child's calls are its own, and part of the parent's inclusive cost; totals add each once."""
    parent, child = rows.run(), None
    child = rows.run(parent_run_id=parent.pk, trigger="delegate", depth=1)
    rows.entry(run_id=parent.pk, estimated_cost_nanos=5)
    rows.entry(run_id=child.pk, estimated_cost_nanos=7)
    found = queries.run_detail(selection(), parent.pk)
    assert (found.run.cost_nanos, found.children[0].cost_nanos, found.total.cost_nanos) == (5, 7, 12)
    assert queries.spend_summary(selection()).cost_nanos == 12
    grandchild = rows.run(parent_run_id=child.pk, trigger="delegate", depth=2)
    rows.entry(run_id=grandchild.pk, estimated_cost_nanos=11)
    deeper = queries.run_detail(selection(), parent.pk)
    assert (len(deeper.children), deeper.total.cost_nanos) == (1, 23)
    with count_queries() as count:
        queries.run_detail(selection(), parent.pk)
    few = count()
    for _ in range(20):
        rows.run(parent_run_id=parent.pk)
        rows.entry(run_id=parent.pk)
    with count_queries() as count:
        queries.run_detail(selection(), parent.pk)
    assert count() == few == 7


def test_a_conversation_is_told_in_six_statements(db: None) -> None:
    """B116: known, estimated and unknown costs of one conversation."""
    thread = rows.thread(title="Broken lamp", last_seq=1)
    Message.objects.create(thread=thread, seq=1, role="user", content="x" * 3000, created_at=rows.NOON)
    run = rows.run(thread_id=thread.pk)
    rows.entry(thread_id=thread.pk, run_id=run.pk, reported_cost_nanos=3)
    rows.entry(thread_id=thread.pk, run_id=run.pk, estimated_cost_nanos=None)
    with count_queries() as count:
        found = queries.thread_detail(selection(), thread.pk)
    assert count() == 6
    assert (found.usage.cost_nanos, found.usage.unpriced_requests, found.run_total) == (3, 1, 1)
    assert (len(found.messages[0].content or ""), found.messages[0].truncated) == (2000, True)
    hidden = queries.thread_detail(Selection.of(RANGE, text=False), thread.pk)
    assert (hidden.thread.title, hidden.messages[0].content) == (None, None)
    with pytest.raises(NotAllowed):
        queries.threads_page(Selection.of(RANGE, text=False), {"title": "lamp"})
    assert queries.threads_page(selection(), {"title": "LAMP"}).total == 1


def test_what_waits_is_listed_oldest_first(sample: None) -> None:
    calls = list(ToolCall.objects.filter(tool_type="action").order_by("created_at")[:3])
    ids = [call.pk for call in calls]
    ToolCall.objects.filter(pk__in=ids).update(status="pending_approval", decision=None, settled_at=None)
    found = queries.pending_approvals(selection())
    assert [row.tool_call_id for row in found] == ids
    assert all(row.thread_title and row.digest and row.cost_nanos is not None for row in found)
    assert queries.approvals_page(selection(), {"kind": "proposal"}).total == 0


def test_a_figure_stands_beside_that_of_the_period_before(db: None) -> None:
    rows.entry(datetime(2026, 6, 20, 1, tzinfo=UTC), model_id="a", estimated_cost_nanos=30)
    rows.entry(datetime(2026, 6, 19, 1, tzinfo=UTC), model_id="b", estimated_cost_nanos=20)
    day = Selection.of(DayRange(first=LAST, last=LAST, zone=UTC))
    change = queries.compare(queries.spend_summary, day)
    assert (change.now and change.now.cost_nanos, change.before and change.before.cost_nanos) == (30, 20)
    assert change.differences["cost_nanos"] == 10
    first, second = queries.moved(queries.spend_by_model, day, "model_id")
    assert (first.differences["cost_nanos"], second.differences["cost_nanos"]) == (30, -20)
    assert first.before is None


def test_deleted_conversations_are_not_among_the_dearest_and_their_spend_stays(db: None) -> None:
    kept, deleted = rows.thread(NOW), rows.thread(NOW, deleted_at=NOW)
    for thread_id in (kept.pk, deleted.pk, "purged"):
        rows.entry(NOW, thread_id=thread_id)
    assert [row.thread_id for row in queries.spend_by_thread(selection())] == [kept.pk]
    assert queries.spend_summary(selection()).cost_nanos == 3000


@pytest.mark.parametrize(
    ("first", "now", "pace"),
    [
        (date(2026, 2, 1), date(2026, 2, 14), 280),  # 28 days
        (date(2024, 2, 1), date(2024, 2, 10), 406),  # 29
        (date(2026, 1, 1), date(2026, 1, 20), 217),  # 31
        (date(2026, 1, 1), date(2026, 1, 31), None),  # it is over
        (date(2026, 1, 2), date(2026, 1, 20), None),  # not the whole month so far
    ],
)
def test_the_pace_is_that_of_the_months_own_days(first: date, now: date, pace: int | None) -> None:
    assert month_pace(Selection.of(DayRange(first=first, last=now, zone=UTC)), 140, now) == pace


def test_what_the_cache_saved_is_less_what_writing_it_cost_more(db: None) -> None:
    rows.price(cache_read_per_million_nanos=10**8, cache_write_per_million_nanos=1_250_000_000)
    rows.entry(NOW, input_tokens=3_000_000, cache_read_tokens=2_000_000, cache_write_tokens=1_000_000)
    (saving,) = queries.cache_savings(selection())
    assert saving.saved_nanos == 1_800_000_000 - 250_000_000


@pytest.mark.parametrize(
    "query",
    [
        queries.spend_overview,
        queries.reliability,
        queries.tool_stats,
        queries.usage_page,
        queries.runs_page,
        queries.threads_page,
        queries.tool_calls_page,
        queries.spend_by_thread,
    ],
)
def test_the_number_of_statements_does_not_grow_with_the_rows(sample: None, query: Callable[..., Any]) -> None:
    roll_up(now=NOW)
    with count_queries() as count:
        query(selection())
    few = count()
    make(Sample(rows=450, seed=4, days=45, last=LAST, until=NOW))
    RollupDay.objects.filter(day__gte=date(2026, 5, 1)).update(state="clean")
    with count_queries() as count:
        query(selection())
    assert count() == few
    assert UsageEntry.objects.count() == 900
