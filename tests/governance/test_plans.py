"""B121: lists, figures and quotas are read by an index or from rollups; never by a whole table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from agent.domain.actor import Actor
from governance import queries
from governance.days import DayRange
from governance.queries import Selection
from governance.quota import LedgerQuota
from governance.rollups import rebuild
from governance.sample import Sample, make

Query = Callable[[Selection], object]

BASE_TABLES = ("agent_token_usage", "agent_run", "agent_tool_call")
WHOLE_TABLE = {
    "sqlite": re.compile(rf"SCAN ({'|'.join(BASE_TABLES)})(?! USING)"),
    "postgresql": re.compile(rf"Seq Scan on ({'|'.join(BASE_TABLES)})\b"),
}
FIGURES: tuple[Query, ...] = (
    *(queries.spend_overview, queries.spend_by_thread, queries.usage_trend, queries.usage_page, queries.reliability),
    *(queries.runs_page, queries.tool_stats, queries.tool_calls_page, queries.threads_page, queries.decisions_page),
)
ORDERED: dict[str, Query] = {
    "agent_usage_created_ix": queries.usage_page,
    "agent_run_begun_ix": queries.runs_page,
    "agent_thread_updated_ix": queries.threads_page,
    "agent_call_created_ix": queries.tool_calls_page,
    "agent_call_decided_ix": queries.decisions_page,
}

pytestmark = pytest.mark.only_on("sqlite", "postgresql")


@pytest.fixture
def asked(db: None) -> Selection:
    now = timezone.now()
    make(Sample(rows=450, seed=3, days=45, last=now.date(), until=now))
    for _ in rebuild():
        pass
    _run("ANALYZE")
    if connection.vendor == "postgresql":
        _run("SET LOCAL enable_seqscan = off")  # a table this small would be read whole although there is an index
    return Selection.of(DayRange.of(now.date() - timedelta(days=29), now.date()))


def test_no_figure_reads_a_whole_table(asked: Selection) -> None:
    plans = {query.__name__: list(_plans(partial(query, asked))) for query in FIGURES}
    assert all(plans.values())
    whole = WHOLE_TABLE[connection.vendor]
    assert [(name, plan) for name, told in plans.items() for plan in told if whole.search(plan)] == []


def test_a_page_is_cut_from_its_order_by_an_index(asked: Selection) -> None:
    unused = [
        index for index, query in ORDERED.items() if not any(index in plan for plan in _plans(partial(query, asked)))
    ]
    assert unused == []


def test_a_quota_is_summed_in_an_index(asked: Selection, settings: Any) -> None:
    settings.AGENT = {**settings.AGENT, "QUOTA": {"day": {"usd": 5}, "month": {"usd": 50}}}
    assert any("agent_usage_quota_ix" in plan for plan in _plans(lambda: LedgerQuota().report(Actor("person-1"))))


def _plans(call: Callable[[], object]) -> Iterator[str]:
    """How the database would answer each of a call's reads."""
    with _recorded() as statements:
        call()
    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    for sql, values in statements:
        with connection.cursor() as cursor:
            cursor.execute(f"{explain} {sql}", values)
            yield "\n".join(str(row[-1]) for row in cursor.fetchall())


@contextmanager
def _recorded() -> Iterator[list[tuple[str, Any]]]:
    statements: list[tuple[str, Any]] = []

    def record(execute: Callable[..., Any], sql: str, values: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT"):
            statements.append((sql, values))
        return execute(sql, values, many, context)

    with connection.execute_wrapper(record):
        yield statements


def _run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
