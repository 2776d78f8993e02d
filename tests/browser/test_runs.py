"""The admin page of runs in a browser: readable by everybody, on a phone too, and a run is stopped with two clicks."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenChat
from tests.browser.test_access import LOOKS, PHONE, overflow

pytestmark = pytest.mark.xdist_group("browser")

RUNS = "/admin/agent/run/"
# Django's own: links in its breadcrumbs and beside its search, and the label of its search box.
THEIRS = [[".breadcrumbs"], ["#changelist-search"]]


def serious(page: Page) -> list[str]:
    # Without preloading: it would write a style sheet into the page, which the policy forbids to axe as well.
    found = Axe().run(page, context={"exclude": THEIRS}, options={"preload": False}).response["violations"]
    return [
        f"{each['id']}: {[node['target'] for node in each['nodes']]}"
        for each in found
        if each["impact"] in {"serious", "critical"}
    ]


def admin_page(open_chat: OpenChat, path: str, **options: object) -> Page:
    """A page of the admin, for a superuser; what breaks the content security policy is an error of the console."""
    page = open_chat(None, path="/login/", **options).page
    page.goto(path)
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill("demo")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"**{path}")
    return page


@pytest.mark.parametrize(("scheme", "viewport"), LOOKS, ids=["light-desktop", "dark-phone"])
def test_list_and_story_are_for_everybody(open_chat: OpenChat, scheme: str, viewport: dict[str, int]) -> None:
    open_chat().ask("where are 1042 and 1043?")
    page = admin_page(open_chat, RUNS, color_scheme=scheme, viewport=viewport)
    expect(page.locator("#result_list tbody tr").first).to_contain_text("completed")
    assert overflow(page) == 0
    assert serious(page) == []
    page.locator("#result_list th a").first.click()
    expect(page.locator(".agent-headline")).to_contain_text("Completed in")
    for fold in page.locator(".agent-moments summary").all():
        fold.click()
    page.get_by_text("The row as it is stored").click()
    assert overflow(page) == 0
    assert serious(page) == []


def test_on_a_phone_each_value_of_the_list_says_what_it_is(open_chat: OpenChat) -> None:
    open_chat().ask("help")
    page = admin_page(open_chat, RUNS, viewport=PHONE)
    first = page.locator("#result_list tbody tr").first
    expect(first.get_by_text("took", exact=True)).to_be_visible()
    expect(first.locator(".agent-none").first).to_be_hidden()


def test_a_run_is_stopped_with_two_clicks(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.say("count to 200 slowly")
    chat.wait_for_words("1 2")
    page = admin_page(open_chat, f"{RUNS}?state=running")
    page.locator("#result_list th a").first.click()
    page.get_by_role("link", name="Stop this run…").click()
    expect(page.get_by_role("heading", name="Stop this run?")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Stop the run").click()
    expect(page.get_by_text(re.compile("asked to stop|was cancelled")).first).to_be_visible()
    expect(chat.answers.last).to_contain_text("This answer was stopped.")
    page.reload()
    expect(page.locator(".agent-headline")).to_contain_text("Cancelled after")
    expect(page.get_by_role("link", name="Stop this run…")).to_have_count(0)
