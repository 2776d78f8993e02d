"""Who sees what: each page with each permission, and nothing of another's."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from governance.admin.console import CONSOLE
from governance.admin.console.navigation import SCREENS
from tests.console.conftest import SignIn
from tests.console.pages import html, text
from tests.governance.rows import entry, thread

pytestmark = pytest.mark.django_db

SPEND, RELIABILITY = "governance.view_spend", "governance.view_reliability"
OPENS = {
    SPEND: {"spend", "usage", "models", "people", "threads"},
    RELIABILITY: {"threads", "runs", "tools", "live"},
    "agent.view_modelprice": {"prices"},
    "agent.view_actionproposal": {"approvals"},
    "agent.decide_actionproposal": set(),
    "governance.view_conversations": set(),
    "governance.export_governance": set(),
    "governance.reprice_usage": set(),
}


@pytest.mark.parametrize("permission", OPENS)
def test_a_permission_opens_its_pages_and_no_other(staff: SignIn, permission: str) -> None:
    client = staff(permission)
    there = {screen.page for screen in CONSOLE.values()}
    opened = {page for page in there if client.get(f"/admin/governance/{page}/").status_code == 200}
    assert opened == OPENS[permission] & there
    refused = {page for page in there if client.get(f"/admin/governance/{page}/").status_code == 403}
    assert refused == there - opened


def test_the_table_above_names_every_screen() -> None:
    assert set().union(*OPENS.values()) == set(SCREENS)


def test_the_bar_shows_only_what_one_may_open(finance: Client) -> None:
    page = text(finance, "/admin/governance/spend/")
    bar = page.partition("Today")[0]
    assert "Usage rows" in bar
    assert "Runs" not in bar
    assert "Prices" not in bar


def test_finance_reads_spend_and_no_text_anywhere(finance: Client) -> None:
    held = thread(timezone.now(), title="tell-nobody-42")
    entry(timezone.now(), thread_id=held.pk)
    for page in sorted(OPENS[SPEND]):
        assert "tell-nobody" not in html(finance, f"/admin/governance/{page}/")
    assert "tell-nobody" not in html(finance, f"/admin/governance/threads/{held.pk}/")


def test_nothing_can_be_posted_where_no_form_is(finance: Client) -> None:
    for page in sorted(OPENS[SPEND]):
        assert finance.post(f"/admin/governance/{page}/").status_code == 405
