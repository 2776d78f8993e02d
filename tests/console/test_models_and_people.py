"""Models and People: the range by one dimension, each row a door to what it is made of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.console.pages import html, text
from tests.governance.rows import NOON, entry, price, thread

pytestmark = pytest.mark.django_db

MODELS, PEOPLE = "/admin/governance/models/", "/admin/governance/people/"
JUNE: dict[str, Any] = {"fromDay": "2026-06-01", "toDay": "2026-06-30"}


def test_a_model_is_shown_with_its_cache_and_its_price(finance: Client) -> None:
    price("m")
    entry(model_id="m", input_tokens=1000, cache_read_tokens=610, estimated_cost_nanos=2 * 10**9)
    page = text(finance, MODELS, **JUNE)
    assert "1 model most of the cost: m, $2.00" in page
    assert "61 %" in page
    assert "$1.00 in, $2.00 out" in page


def test_a_model_without_a_price_says_so(finance: Client) -> None:
    entry(model_id="gpt-x", estimated_cost_nanos=None)
    page = text(finance, MODELS, **JUNE)
    assert "1 of them has calls without a price" in page
    assert "no price: add one" in page


def test_a_person_has_a_name_conversations_and_a_last_call(finance: Client) -> None:
    ana = User.objects.create_user("ana", first_name="Ana", last_name="Lima")
    for number in range(3):
        entry(NOON + timedelta(minutes=number), actor_ref=str(ana.pk), thread_id=f"thread-{number % 2}")
    page = text(finance, PEOPLE, **JUNE)
    assert "1 person most of the cost: Ana Lima" in page
    row = page[page.index("last call") :]
    assert "Ana Lima" in row
    assert " 3 " in row
    assert " 2 15 Jun 12:02" in row


@pytest.mark.parametrize("url", [MODELS, PEOPLE])
def test_the_number_of_queries_does_not_grow_with_the_rows(finance: Client, url: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            html(finance, url, **JUNE)
        return len(captured)

    entry(thread_id=thread().pk, actor_ref="1")
    few = queries()
    for number in range(20):
        entry(model_id=f"m{number}", actor_ref=str(number + 2), thread_id=thread().pk)
    assert queries() == few


@pytest.mark.parametrize("url", [MODELS, PEOPLE])
def test_nothing_used_is_said(finance: Client, url: str) -> None:
    entry()
    assert "No usage in this range." in text(finance, url, fromDay="2026-01-01", toDay="2026-01-02")


def test_one_person_is_shown_with_what_is_left_of_the_limits(finance: Client, settings: Any) -> None:
    settings.AGENT = {"QUOTA": {"day": {"usd": 5}, "month": {"tokens": 1000, "usd": 40}}}
    entry(timezone.now(), actor_ref="ana", estimated_cost_nanos=2 * 10**9)
    page = text(finance, PEOPLE, actor="ana")
    assert "Limit of the day $2.00 of $5.00" in page
    assert "Limit of the month $2.00 of $40.00" in page
    assert "110 of 1,000 tokens" in page
    assert "Limit of" not in text(finance, PEOPLE)


def test_a_person_of_no_tenant_of_ours_is_shown_without_limits(finance: Client, settings: Any) -> None:
    """The site may not know who that was: the account is deleted, its ledger rows are not."""
    settings.AGENT = {"QUOTA": {"day": {"usd": 5}}, "CONSOLE_SCOPE": "tests.console.test_shell.only_north"}
    entry(timezone.now(), actor_ref="gone", tenant_ref="north")
    page = text(finance, PEOPLE, actor="gone")
    assert "1 person" in page
    assert "Limit of" not in page
