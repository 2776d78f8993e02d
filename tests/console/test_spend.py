"""Spend: its answer against the time before, honest about what is unknown, and every figure a door."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.console.conftest import SignIn
from tests.console.pages import html, links, text
from tests.governance.rows import NOON, entry, price, thread

pytestmark = pytest.mark.django_db

SPEND = "/admin/governance/spend/"
DOLLAR = 10**9
JUNE: dict[str, Any] = {"fromDay": "2026-06-01", "toDay": "2026-06-30"}


def used(at: datetime = NOON, dollars: int = 1, **fields: object) -> None:
    entry(at, estimated_cost_nanos=dollars * DOLLAR, **fields)


def test_the_answer_is_the_sum_and_its_difference_to_the_days_before(finance: Client) -> None:
    used(dollars=1240, model_id="model-a")
    used(NOON - timedelta(days=30), dollars=1000, model_id="model-a")
    page = text(finance, SPEND, **JUNE)
    assert "$1,240.00 +$240.00 (+24 %) against the 30 days before" in page


def test_without_earlier_data_it_says_so(finance: Client) -> None:
    used()
    assert "no earlier data in the 30 days before" in text(finance, SPEND, **JUNE)


def test_what_is_unpriced_is_said_beside_the_sum_and_leads_to_its_rows(finance: Client) -> None:
    used(dollars=12)
    entry(estimated_cost_nanos=None)
    page = html(finance, SPEND, **JUNE)
    assert "1 call is unpriced and not in the sum" in page
    assert "$12.00 + 1 unpriced" in page


def test_a_sum_of_unknown_costs_is_unpriced_and_never_nothing(finance: Client) -> None:
    entry(estimated_cost_nanos=None)
    page = text(finance, SPEND, **JUNE)
    assert "30 days unpriced no earlier data" in page or "unpriced no earlier data" in page
    answer = page[page.index("days in") : page.index("Cost by day")]
    assert "$0.00" not in answer


@pytest.mark.parametrize(("nanos", "shown"), [(1, "< $0.000001"), (4_200, "$0.000004"), (0, "$0.00")])
def test_no_known_cost_is_shown_as_nothing(finance: Client, nanos: int, shown: str) -> None:
    entry(estimated_cost_nanos=nanos)
    assert f"days in UTC {shown}" in text(finance, SPEND, **JUNE)


def test_what_moved_names_the_parts_that_changed_most(finance: Client) -> None:
    used(dollars=9, model_id="model-a", agent_name="billing")
    used(dollars=2, model_id="model-b", agent_name="billing")
    used(NOON - timedelta(days=30), dollars=1, model_id="model-a", agent_name="shop")
    used(NOON - timedelta(days=30), dollars=3, model_id="model-b", agent_name="shop")
    page = text(finance, SPEND, **JUNE)
    assert "What moved: agent billing +$11.00 model model-a +$8.00" in page
    assert "model model-b -$1.00" in page


@pytest.mark.parametrize("by", ["model", "agent", "person", "tenant", "purpose"])
def test_every_division_adds_up_to_the_answer_and_its_rows_lead_on(finance: Client, by: str) -> None:
    used(dollars=3, model_id="m1", agent_name="a1", actor_ref="p1", tenant_ref="t1", purpose="chat")
    used(dollars=4, model_id="m2", agent_name=None, actor_ref="p2", tenant_ref=None, purpose="title")
    page = html(finance, SPEND, by=by, **JUNE)
    assert "$4.00" in page
    assert "$3.00" in page
    parameter = {"person": "actor", "tenant": "tenantRef"}.get(by, by)
    chosen = [url for url in links(page) if url.startswith(SPEND) and f"{parameter}=" in url]
    assert len(set(chosen)) >= 2
    for url in chosen:
        assert html(finance, url)


def test_an_empty_range_says_so_and_where_there_is_something(finance: Client) -> None:
    used()
    page = html(finance, SPEND, fromDay="2026-01-01", toDay="2026-01-31")
    assert "No usage in this range." in page
    assert any("toDay=2026-06-15" in url for url in links(page))


def test_an_empty_ledger_says_what_fills_it(finance: Client) -> None:
    assert "agent_demo_data" in text(finance, SPEND)


def test_the_month_so_far_says_what_it_comes_to(finance: Client) -> None:
    used(datetime.now(UTC), dollars=100)
    today = datetime.now(UTC).date()
    page = text(finance, SPEND, fromDay=str(today.replace(day=1)), toDay=str(today))
    assert "at this pace $" in page


def test_a_title_is_text_and_needs_its_permission(finance: Client, staff: SignIn) -> None:
    thread(id="0123456789ab", title="A secret of Ana's")
    used(thread_id="0123456789ab")
    assert "secret" not in text(finance, SPEND, **JUNE)
    assert "Conversation 01234567" in text(finance, SPEND, **JUNE)
    reader = staff("governance.view_spend", "governance.view_conversations")
    assert "A secret of Ana's" in text(reader, SPEND, **JUNE)


def test_the_chart_has_one_link_a_day_that_reads_the_day_out_and_a_table(finance: Client) -> None:
    used(dollars=7, model_id="model-a")
    page = html(finance, SPEND, **JUNE)
    assert page.count('class="gov-column"') == 30
    assert "Mon 15 Jun: $7.00 · model-a $7.00 · before: $0.00" in page
    assert any("fromDay=2026-06-15&toDay=2026-06-15" in url for url in links(page))
    assert "The same as a table" in page


def test_a_long_range_is_drawn_by_weeks(finance: Client) -> None:
    used()
    page = html(finance, SPEND, fromDay="2026-01-01", toDay="2026-12-31")
    assert page.count('class="gov-column"') == 53
    assert "Cost by week" in page


def test_the_number_of_queries_does_not_grow_with_the_rows(finance: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            html(finance, SPEND, **JUNE)
        return len(captured)

    used(thread_id=thread().pk)
    few = queries()
    for number in range(30):
        fields: dict[str, Any] = {"model_id": f"m{number}", "actor_ref": f"p{number}", "tenant_ref": f"t{number}"}
        used(NOON - timedelta(days=number % 12), thread_id=thread().pk, **fields)
    assert queries() == few


def test_what_the_cache_saved_is_said_at_the_prices_now(finance: Client) -> None:
    price(cache_read_per_million_nanos=10**8)
    entry(input_tokens=3_000_000, cache_read_tokens=2_000_000)
    assert "2.0 M read from cache, which saved about $1.80" in text(finance, SPEND, **JUNE)


def test_a_filter_that_no_summary_tells_apart_is_said_to_take_longer(finance: Client) -> None:
    used()
    assert "takes longer" in text(finance, SPEND, model="m", **JUNE)
    assert "takes longer" not in text(finance, SPEND, actor="ana", **JUNE)


def test_who_is_near_a_limit_or_over_it_is_named(settings: Any, finance: Client) -> None:
    settings.AGENT = {"QUOTA": {"day": {"usd": 1, "warn_at": 0.8}, "month": {"usd": 100}}}
    now = timezone.now()
    entry(now, actor_ref="near", estimated_cost_nanos=900_000_000)
    entry(now, actor_ref="over", estimated_cost_nanos=1_000_000_000)
    entry(now, actor_ref="far", estimated_cost_nanos=100_000_000)
    page = text(finance, SPEND)
    assert "near is at 90 % of the day's limit" in page
    assert "over has used up the day's limit" in page
    assert "far is at" not in page
