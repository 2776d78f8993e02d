"""An action that asks first, as the customer meets it: a card with what will happen, and two answers that both hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect

from tests.browser.chat import Chat
from tests.browser.conftest import OpenChat
from tests.demo_site import DemoSite, demo_site

pytestmark = pytest.mark.xdist_group("browser")

ORDER = 1043


@pytest.fixture(scope="module")
def site(demo_database: Callable[[], Path]) -> Iterator[DemoSite]:
    """A demo of its own: its orders are changed."""
    with demo_site(demo_database()) as running:
        yield running


def card_of(chat: Chat) -> Locator:
    return chat.answers.last.get_by_role("group", name=f"Cancel order {ORDER}?")


def asks(chat: Chat) -> Locator:
    """The card after the customer asked for a cancellation."""
    chat.say(f"cancel order {ORDER}")
    card = card_of(chat)
    expect(card.get_by_role("button", name="Cancel the order")).to_be_visible()
    return card


def test_a_refusal_leaves_everything_as_it_was(chat: Chat) -> None:
    card = asks(chat)
    expect(card).to_contain_text("The parcel is called back. $85.50 are paid back. This cannot be undone.")
    expect(card.locator(".agent-card-given")).to_contain_text(str(ORDER))
    card.get_by_role("button", name="Do not do it").click()
    chat.wait_for_words("I have changed nothing")
    chat.settled()
    expect(card_of(chat)).to_contain_text("Not to be done.")
    expect(chat.answers.last.locator(".agent-tool summary").first).to_contain_text("not carried out")
    chat.ask(f"where is order {ORDER}?")
    expect(chat.answers.last).to_contain_text("is on its way")


def test_a_card_is_there_again_after_a_reload_and_a_stop_takes_it_along(chat: Chat) -> None:
    asks(chat)
    chat.page.reload()
    expect(card_of(chat).get_by_role("button", name="Cancel the order")).to_be_visible()
    results = Axe().run(chat.page)
    serious = [found["id"] for found in results.response["violations"] if found["impact"] in {"serious", "critical"}]
    assert serious == []
    chat.button("Stop").click()
    expect(card_of(chat)).to_contain_text("Over without a decision.")
    expect(card_of(chat).get_by_role("button")).to_have_count(0)


def test_a_card_that_waited_for_longer_than_its_stream_is_kept_is_still_there(chat: Chat) -> None:
    asks(chat)
    meta = 'event: meta\ndata: {"runId": "r"}\n\n'
    chat.page.route("**/stream**", lambda route: route.fulfill(content_type="text/event-stream", body=meta))
    chat.page.reload()
    expect(card_of(chat).get_by_role("button", name="Cancel the order")).to_be_visible()
    chat.page.unroute_all()
    card_of(chat).get_by_role("button", name="Do not do it").click()
    chat.wait_for_words("I have changed nothing")
    chat.settled()
    expect(card_of(chat)).to_have_count(1)


def test_what_was_approved_happens_in_every_window(open_chat: OpenChat) -> None:
    chat = open_chat()
    asks(chat)
    other = open_chat(path=chat.page.url)
    card_of(other).get_by_role("button", name="Cancel the order").click()
    for window in (chat, other):
        window.wait_for_words(f"Order {ORDER} is cancelled.")
        expect(card_of(window)).to_contain_text("Approved.")
        expect(card_of(window).get_by_role("button")).to_have_count(0)
    other.settled()
    other.ask(f"cancel order {ORDER}")
    expect(other.answers.last).to_contain_text("cannot be cancelled any more")
    expect(other.answers.last.locator(".agent-card")).to_have_count(0)


def test_questions_are_answered_in_a_form_that_says_what_is_wrong(chat: Chat) -> None:
    chat.say("help me choose a lamp")
    form = chat.answers.last.get_by_role("form", name="A question to you")
    expect(form.get_by_label("A desk")).to_be_checked()
    form.get_by_label("The living room").check()
    form.get_by_label("What may it cost").fill("3")
    form.get_by_role("button", name="Send answers").click()
    expect(form.get_by_role("alert").last).to_have_text("between 5 and any")
    form.get_by_label("What may it cost").fill("250")
    chat.page.reload()
    form.get_by_label("The living room").check()
    form.get_by_label("What may it cost").fill("250")
    form.get_by_role("button", name="Send answers").click()
    chat.wait_for_words("For living and up to $250")
    chat.settled()
    expect(form).to_have_count(0)


def test_questions_that_are_skipped_say_what_is_assumed(chat: Chat) -> None:
    chat.say("help me choose a lamp")
    form = chat.answers.last.get_by_role("form", name="A question to you")
    form.get_by_role("button", name="Skip").click()
    chat.wait_for_words("I assumed what you left open.")
    chat.settled()
