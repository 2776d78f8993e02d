"""What every screen of the console has: days and filters in its address, who may, any admin site, any language."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.db import OperationalError, connection
from django.test import Client
from django.urls import path, reverse
from django.utils import timezone

import governance.admin
from governance.admin.console import CONSOLE
from governance.admin.console.navigation import SCREENS
from governance.days import today
from governance.models import SCREENS as MODELS
from tests.console.conftest import SignIn
from tests.console.pages import html, links, text
from tests.governance.rows import entry, thread

ops = admin.AdminSite(name="ops")
governance.admin.register(ops)
urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

SPEND = "/admin/governance/spend/"


@contextmanager
def unreadable(table: str) -> Iterator[None]:
    """A database that cannot read one table."""

    def refuse(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if f'"{table}"' in sql or f"`{table}`" in sql:
            raise OperationalError("broken")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(refuse):
        yield


def now() -> date:
    return today(timezone.get_default_timezone())


def test_every_screen_has_an_entry_a_place_and_the_path_of_its_name() -> None:
    assert [model._meta.model_name for model in MODELS] == list(SCREENS)
    for model, screen in CONSOLE.items():
        assert reverse(f"admin:governance_{screen.page}") == f"/admin/governance/{model._meta.model_name}/"
        assert reverse(f"admin:governance_{screen.page}", current_app="ops").startswith("/ops/")


def test_who_has_none_of_its_permissions_sees_no_entry_and_no_page(staff: SignIn) -> None:
    somebody = staff("agent.view_thread")
    assert "Governance" not in html(somebody, "/admin/")
    for screen in CONSOLE.values():
        assert somebody.get(reverse(f"admin:governance_{screen.page}")).status_code == 403


def test_a_stranger_is_asked_to_sign_in(client: Client) -> None:
    answer = client.get(SPEND)
    assert answer.status_code == 302
    assert "login" in answer["Location"]


def test_the_address_reproduces_the_view(finance: Client) -> None:
    page = html(finance, SPEND, fromDay="2026-06-01", toDay="2026-06-15", agent="billing", by="agent")
    other_days = [url for url in links(page) if url.startswith("?fromDay=") and "fromDay=2026-06-01" not in url]
    assert len(other_days) >= 6
    assert all("agent=billing" in url and "by=agent" in url for url in other_days)
    assert 'value="2026-06-01"' in page
    assert 'value="billing"' in page


def test_the_day_bar_leads_to_each_of_its_ranges(finance: Client) -> None:
    found = links(html(finance, SPEND))
    end = now()
    last_month = end.replace(day=1) - timedelta(days=1)
    for first, last in (
        (end, end),
        (end - timedelta(days=6), end),
        (end - timedelta(days=29), end),
        (end - timedelta(days=89), end),
        (end.replace(day=1), end),
        (last_month.replace(day=1), last_month),
    ):
        assert f"?fromDay={first}&toDay={last}" in found


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"fromDay": "yesterday"}, "fromDay"),
        ({"fromDay": "2026-02-30"}, "fromDay"),
        ({"fromDay": "2026-06-02", "toDay": "2026-06-01"}, "fromDay"),
        ({"toDay": "0001-01-01"}, "toDay"),
        ({"fromDay": "9999-12-31", "toDay": "9999-12-31"}, "fromDay"),
        ({"agnet": "billing"}, "agnet"),
        ({"model": "a\0b"}, "model"),
        ({"actor": "x" * 256}, "actor"),
        ({"by": "moon"}, "by"),
    ],
)
def test_an_address_that_is_not_understood_is_told_by_the_name_of_its_field(
    finance: Client, query: dict[str, str], named: str
) -> None:
    assert named in text(finance, SPEND, status=400, **query)


def test_the_days_are_those_of_the_reporting_zone_and_say_so(finance: Client, settings: Any) -> None:
    settings.AGENT = {"REPORT_TIME_ZONE": "Pacific/Auckland"}
    assert "days in Pacific/Auckland" in text(finance, SPEND)


def test_a_scope_hides_what_other_tenants_used(finance: Client, settings: Any) -> None:
    entry(timezone.now(), tenant_ref="north", model_id="seen", cost_nanos=10**9, estimated_cost_nanos=10**9)
    entry(timezone.now(), tenant_ref="south", model_id="hidden", cost_nanos=10**9, estimated_cost_nanos=10**9)
    settings.AGENT = {"CONSOLE_SCOPE": "tests.console.test_shell.only_north"}
    page = text(finance, SPEND)
    assert "seen" in page
    assert "hidden" not in page


def only_north(request: object) -> list[str]:
    return ["north"]


def test_a_part_that_cannot_be_read_leaves_the_others(finance: Client) -> None:
    thread(timezone.now(), id="thread-1", title="kept")
    entry(timezone.now())
    with unreadable("agent_thread"):
        page = text(finance, SPEND)
    assert page.count("This part could not be read.") == 1
    assert "By model" in page


@pytest.mark.parametrize("language", ["de", "fr", "ar", "hi", "pt-br"])
def test_separators_of_a_language_are_in_figures_and_never_in_addresses(
    finance: Client,
    settings: Any,
    language: str,
) -> None:
    settings.LANGUAGE_CODE, settings.USE_THOUSAND_SEPARATOR = language, True
    entry(timezone.now(), model_id="model 1000", input_tokens=1_234_567, estimated_cost_nanos=1_234_560_000_000)
    page = html(finance, SPEND)
    end = now()
    assert f"?fromDay={end}&toDay={end}" in links(page)
    assert f'value="{end}"' in page
    assert "$1,234.56" not in page or language in {"hi"}


def test_hostile_words_are_only_words(finance: Client) -> None:
    entry(timezone.now(), model_id="<script>alert(1)</script>", agent_name='"><b>x', cost_nanos=5, purpose="{{ 7*7 }}")
    for by in ("model", "agent", "purpose"):
        page = html(finance, SPEND, by=by)
        assert "<script>alert" not in page
        assert "<b>x" not in page
        assert "49" not in text(finance, SPEND, by="purpose").replace("2049", "")


def test_a_page_holds_no_style_and_no_script_of_its_own(finance: Client) -> None:
    entry(timezone.now())
    page = html(finance, SPEND)
    console = page[page.index('<div class="gov">') :]
    assert "<style" not in console
    assert " style=" not in console
    assert "<script" not in console
