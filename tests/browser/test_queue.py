"""Typing ahead in the chat page: what waits is shown, arranged and answered, in every window and across a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser.chat import Chat
from tests.browser.conftest import OpenChat
from tests.browser.test_access import LOOKS, overflow, serious
from tests.demo_site import demo_site

pytestmark = pytest.mark.xdist_group("browser")

LONG = "count to 200"


def waiting(chat: Chat) -> Locator:
    return chat.page.locator(".agent-queued-text")


def act(chat: Chat, name: str, text: str) -> None:
    chat.page.get_by_role("button", name=f"{name}: {text}", exact=True).click()


def begin(chat: Chat, question: str = LONG) -> None:
    chat.say(question)
    chat.wait_for_words("1 2")


def test_what_is_typed_ahead_waits_is_arranged_and_answered_in_order(open_chat: OpenChat) -> None:
    chat = open_chat()
    begin(chat)
    for text in ("help", "where is 1042?", "where is 1043?"):
        chat.say(text)
    expect(waiting(chat)).to_have_text(["help", "where is 1042?", "where is 1043?"])
    act(chat, "Move up", "where is 1043?")
    expect(waiting(chat)).to_have_text(["help", "where is 1043?", "where is 1042?"])
    act(chat, "Remove", "help")
    act(chat, "Change", "where is 1042?")
    chat.page.get_by_label("The waiting message").fill("where is 1044?")
    chat.button("Save").click()
    expect(waiting(chat)).to_have_text(["where is 1043?", "where is 1044?"])
    act(chat, "Send now", "where is 1044?")
    expect(chat.own).to_have_text([LONG, "where is 1044?", "where is 1043?"], timeout=60_000)
    expect(waiting(chat)).to_have_count(0)
    chat.settled()
    expect(chat.answers).to_have_count(3)


@pytest.mark.once
def test_kill_9_and_a_second_start_answer_what_waits_once_before_the_open_page(
    demo_database: Callable[[], Path], open_chat: OpenChat
) -> None:
    database, question = demo_database(), "count to 80"
    with demo_site(database) as first:
        chat = open_chat(at=first)
        begin(chat, question)
        for text in ("help", "where is 1042?"):
            chat.say(text)
        expect(waiting(chat)).to_have_text(["help", "where is 1042?"])
        port = str(urlsplit(first.url).port)
        first.process.kill()
        first.process.communicate()
    with demo_site(database, PORT=port):
        expect(chat.own).to_have_text([question, "help", "where is 1042?"], timeout=60_000)
        expect(waiting(chat)).to_have_count(0)
        chat.settled()
        chat.page.reload()
        expect(chat.own).to_have_text([question, "help", "where is 1042?"])
        expect(chat.answers).to_have_count(3)


def test_a_stop_holds_what_waits_until_the_reader_goes_on(open_chat: OpenChat) -> None:
    chat = open_chat()
    begin(chat)
    chat.say("help")
    expect(waiting(chat)).to_have_text(["help"])
    chat.button("Stop").click()
    expect(chat.page.get_by_role("heading", name="Held, because an answer was stopped.")).to_be_visible()
    chat.page.reload()
    expect(waiting(chat)).to_have_text(["help"])
    chat.button("Go on").click()
    expect(chat.own).to_have_text([LONG, "help"])
    chat.settled()
    expect(waiting(chat)).to_have_count(0)


def test_two_windows_stay_in_step(open_chat: OpenChat) -> None:
    here = open_chat()
    begin(here)
    there = open_chat(path=here.page.url)
    there.wait_for_words("1 2")
    here.say("help")
    expect(waiting(there)).to_have_text(["help"])
    there.button("Remove: help").click()
    expect(waiting(here)).to_have_count(0)
    here.button("Stop").click()
    here.settled()
    there.settled()
    there.say("where is 1042?")
    expect(here.own).to_have_text([LONG, "where is 1042?"])


@pytest.mark.parametrize(("scheme", "viewport"), LOOKS, ids=["light-desktop", "dark-phone"])
def test_the_queue_is_for_everybody(open_chat: OpenChat, scheme: str, viewport: dict[str, int]) -> None:
    chat = open_chat(color_scheme=scheme, viewport=viewport)
    begin(chat)
    for text in ("a rather long question, which does not fit into one line of a phone, about the order 1042", "help"):
        chat.say(text)
    expect(waiting(chat)).to_have_count(2)
    assert overflow(chat.page) == 0
    assert serious(chat.page) == []
    chat.button("Remove all").click()
    expect(waiting(chat)).to_have_count(0)


def test_an_opened_conversation_shows_its_newest_words_beside_what_waits(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.page.set_viewport_size({"width": 390, "height": 844})
    chat.ask("help")
    chat.say("cancel order 1043")
    expect(chat.button("Cancel the order")).to_be_visible()
    for text in ("where is 1042?", "where is 1044?"):
        chat.say(text)
    expect(waiting(chat)).to_have_count(2)
    chat.page.reload()
    expect(waiting(chat)).to_have_count(2)
    expect(chat.page.get_by_label("Do not ask again in this conversation")).to_be_in_viewport()
    expect(chat.button("Go to the newest")).to_have_count(0)


def test_what_was_written_first_arrives_first_whatever_the_line_does(open_chat: OpenChat) -> None:
    chat = open_chat()
    begin(chat)
    held: list[Route] = []

    def slow(route: Route) -> None:
        if "help" in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    chat.page.route("**/agent/chat", slow)
    chat.say("help")
    expect(chat.own.filter(has_text="help")).to_have_count(1)
    chat.say("where is 1042?")
    expect(chat.own.filter(has_text="where is 1042?")).to_have_count(1)
    assert len(held) == 1
    held[0].continue_()
    expect(waiting(chat)).to_have_text(["help", "where is 1042?"])
    chat.button("Remove all").click()
    chat.button("Stop").click()
