"""The screens, the files and the JSON API are faces of one query: the same rows, in the same order."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from agent.models import ToolCall
from governance import queries
from governance.days import DayRange
from governance.queries import Ask, Selection
from governance.sample import Sample, make
from tests.edges.conftest import Person, body_of, person
from tests.governance.test_api import BASE

LAST = date(2026, 6, 20)
DAYS = {"fromDay": "2026-05-20", "toDay": "2026-06-20"}
RANGE = DayRange(first=date(2026, 5, 20), last=LAST, zone=UTC)
PAGES: dict[str, tuple[Callable[..., Any], str]] = {
    "usage-page": (queries.usage_page, "id"),
    "runs-page": (queries.runs_page, "run_id"),
    "tool-calls-page": (queries.tool_calls_page, "tool_call_id"),
    "threads-page": (queries.threads_page, "thread_id"),
    "approvals-page": (queries.approvals_page, "tool_call_id"),
    "decisions-page": (queries.decisions_page, "id"),
}
LATEST: dict[str, tuple[Callable[..., Any], str]] = {
    "runs": (queries.recent_runs, "run_id"),
    "tool-calls": (queries.recent_tool_calls, "tool_call_id"),
    "threads": (queries.recent_threads, "thread_id"),
    "approvals": (queries.pending_approvals, "tool_call_id"),
    "top-threads": (queries.spend_by_thread, "thread_id"),
}
FILTERS = [{}, {"agent": "shop"}, {"tenantRef": "north"}, {"model": "large-4"}, {"purpose": "chat"}]


@pytest.fixture
def sample(db: None) -> None:
    make(Sample(rows=190, seed=5, days=45, last=LAST, until=datetime(2026, 6, 20, 15, tzinfo=UTC)))
    waiting = ToolCall.objects.filter(tool_type="action").values_list("pk", flat=True)[:3]
    ToolCall.objects.filter(pk__in=[*waiting]).update(status="pending_approval", decision=None, settled_at=None)


@pytest.fixture
def everybody(sample: None) -> Person:
    """Who sees every tenant's."""
    return person("all", is_staff=True, is_superuser=True)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def selected(filters: dict[str, str]) -> Selection:
    return Selection.of(
        RANGE, {"tenant_ref" if name == "tenantRef" else name: value for name, value in filters.items()}
    )


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("route", PAGES)
def test_a_page_is_the_query_and_its_file_is_the_page(everybody: Person, route: str, filters: dict[str, str]) -> None:
    query, key = PAGES[route]
    wanted = [str(getattr(row, key)) for row in query(selected(filters), {}, Ask(limit=200)).rows]
    asked = {**(DAYS if route != "approvals-page" else {}), **filters}  # what waits is shown whatever the range
    answer = everybody.client.get(BASE + route, {**asked, "limit": "200"})
    assert answer.status_code == 200
    assert [str(row[camel(key)]) for row in answer.json()["rows"]] == wanted
    assert answer.json()["total"] == len(wanted)
    file = body_of(everybody.client.get(BASE + route, {**asked, "format": "csv"})).decode("utf-8-sig")
    assert [row[camel(key)] for row in csv.DictReader(io.StringIO(file))] == wanted
    assert wanted or filters


@pytest.mark.parametrize("route", LATEST)
def test_a_list_is_the_query(everybody: Person, route: str) -> None:
    query, key = LATEST[route]
    wanted = [getattr(row, key) for row in query(selected({}), 7)]
    assert [row[camel(key)] for row in everybody.client.get(BASE + route, {**DAYS, "limit": "7"}).json()] == wanted
    assert wanted


def test_the_overviews_are_the_queries(everybody: Person) -> None:
    spend = everybody.client.get(f"{BASE}spend", DAYS).json()
    whole = queries.spend_overview(selected({}))
    for name in ("by_model", "by_actor", "by_agent", "by_purpose", "by_tenant", "trend"):
        assert [row["requests" if name != "trend" else "totalTokens"] for row in spend[camel(name)]] == [
            row.requests if name != "trend" else row.total_tokens for row in getattr(whole, name)
        ]
    reliability, runs = everybody.client.get(f"{BASE}reliability", DAYS).json(), queries.reliability(selected({}))
    assert [row["runs"] for row in reliability["byAgent"]] == [row.runs for row in runs.by_agent]
    assert [row["count"] for row in reliability["errors"]] == [row.count for row in runs.errors]
    assert [row["runs"] for row in reliability["trend"]] == [row.runs for row in runs.trend]
    tools = everybody.client.get(f"{BASE}tools", DAYS).json()
    assert [row["toolName"] for row in tools] == [row.tool_name for row in queries.tool_stats(selected({}))]
    run = queries.runs_page(selected({})).rows[0]
    detail = everybody.client.get(f"{BASE}runs/{run.run_id}").json()
    assert len(detail["usage"]) == len(queries.run_detail(selected({}), run.run_id).usage)
    thread = queries.threads_page(selected({})).rows[0]
    told = everybody.client.get(f"{BASE}threads/{thread.thread_id}").json()
    assert told["runTotal"] == queries.thread_detail(selected({}), thread.thread_id).run_total
