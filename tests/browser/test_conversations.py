"""Conversations over time: found again, renamed, branched, changed, deleted; and what was typed is never lost."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Route, expect

from tests.browser.chat import Chat
from tests.browser.conftest import OpenChat

pytestmark = pytest.mark.xdist_group("browser")


def abort(route: Route) -> None:
    route.abort()


def test_a_message_that_cannot_be_sent_is_in_the_box_again_and_is_taken_once(chat: Chat) -> None:
    chat.page.route("**/agent/chat", abort)
    chat.say("where is order 1042?")
    expect(chat.notice).to_contain_text("The server cannot be reached.")
    expect(chat.notice).to_contain_text("Your message is kept in the box below.")
    expect(chat.box).to_have_value("where is order 1042?")
    expect(chat.own).to_have_count(0)
    chat.page.reload()
    expect(chat.box).to_have_value("where is order 1042?")
    chat.page.unroute("**/agent/chat")
    chat.box.press("Enter")
    chat.settled()
    expect(chat.own).to_have_text(["where is order 1042?"])
    expect(chat.box).to_have_value("")


def test_an_answer_that_got_lost_on_the_way_is_not_asked_for_twice(chat: Chat) -> None:
    def deliver_and_lose(route: Route) -> None:
        route.fetch()
        route.abort()

    chat.page.route("**/agent/chat", deliver_and_lose, times=1)
    chat.say("where is order 1043?")
    chat.settled()
    expect(chat.own).to_have_text(["where is order 1043?"])
    expect(chat.answers).to_have_count(1)
    chat.page.reload()
    expect(chat.own).to_have_text(["where is order 1043?"])
    expect(chat.box).to_have_value("")


def test_typed_words_survive_a_reload_and_belong_to_their_conversation(chat: Chat) -> None:
    chat.ask("help")
    chat.box.fill("half a thought")
    chat.page.reload()
    expect(chat.box).to_have_value("half a thought")
    chat.button("New conversation").click()
    expect(chat.box).to_have_value("")
    chat.page.go_back()
    expect(chat.own).to_have_text(["help"])
    expect(chat.box).to_have_value("half a thought")


def test_signed_out_in_mid_conversation_offers_to_sign_in(chat: Chat) -> None:
    chat.ask("help")
    chat.page.context.clear_cookies()
    chat.say("list my orders")
    expect(chat.notice).to_contain_text("You are signed out.")
    expect(chat.box).to_have_value("list my orders")
    chat.button("Sign in").click()
    chat.page.get_by_role("button", name="alice").click()
    expect(chat.own).to_have_text(["help"])
    expect(chat.box).to_have_value("list my orders")


def test_rename_and_delete(chat: Chat) -> None:
    chat.ask("help")
    options = chat.page.locator("summary", has_text="Options")
    options.click()
    chat.button("Rename").click()
    dialog = chat.page.get_by_role("dialog")
    dialog.get_by_label("Title").fill("All about lamps")
    dialog.get_by_label("Title").press("Enter")
    expect(chat.title).to_have_text("All about lamps")
    expect(chat.conversations.filter(has_text="All about lamps")).to_have_count(1)
    options.click()
    chat.button("Delete").click()
    expect(dialog).to_contain_text("“All about lamps” will no longer be listed")
    dialog.get_by_role("button", name="Delete").click()
    expect(chat.title).to_have_text("New conversation")
    expect(chat.conversations.filter(has_text="All about lamps")).to_have_count(0)


def test_changing_a_message_replaces_what_came_after_it_only_when_sent(chat: Chat) -> None:
    chat.ask("help")
    chat.ask("where is order 1042?")
    chat.own.last.hover()
    chat.button("Change").last.click()
    expect(chat.box).to_have_value("where is order 1042?")
    chat.button("Keep it as it was").click()
    expect(chat.own).to_have_text(["help", "where is order 1042?"])
    chat.own.last.hover()
    chat.button("Change").last.click()
    chat.box.fill("where is order 1043?")
    chat.box.press("Enter")
    expect(chat.own).to_have_text(["help", "where is order 1043?"])
    chat.settled()
    chat.page.reload()
    expect(chat.own).to_have_text(["help", "where is order 1043?"])
    expect(chat.last_text).to_contain_text("1043")


def test_answer_again_gives_one_answer_and_branch_leaves_the_original(chat: Chat) -> None:
    chat.ask("where is order 1042?")
    chat.button("Answer again").click()
    expect(chat.button("Answer again")).to_have_count(0)
    chat.settled()
    expect(chat.answers).to_have_count(1)
    chat.ask("help")
    original = chat.page.url
    chat.answers.first.hover()
    chat.answers.first.get_by_role("button", name="Branch from here").click()
    expect(chat.notice).to_contain_text("This is a copy up to here.")
    expect(chat.own).to_have_text(["where is order 1042?"])
    assert chat.page.url != original
    chat.page.goto(original)
    expect(chat.own).to_have_text(["where is order 1042?", "help"])


def test_feedback_is_kept(chat: Chat) -> None:
    chat.ask("help")
    chat.button("Not helpful").click()
    dialog = chat.page.get_by_role("dialog")
    dialog.get_by_label("A few words, if you like").fill("too short")
    dialog.get_by_role("button", name="Send").click()
    chat.page.reload()
    expect(chat.button("Not helpful")).to_have_attribute("aria-pressed", "true")
    chat.button("Helpful").click()
    expect(chat.button("Helpful")).to_have_attribute("aria-pressed", "true")
    expect(chat.button("Not helpful")).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize("address", ["/?thread=0195-not-there", "/?thread=%00"])
def test_a_conversation_that_is_not_there_is_told_in_words(open_chat: OpenChat, address: str) -> None:
    chat = open_chat(path=address)
    expect(chat.notice).to_contain_text("This conversation is not there")
    chat.notice.get_by_role("button", name="New conversation").click()
    chat.ask("help")


def test_somebody_elses_conversation_is_not_shown(chat: Chat, open_chat: OpenChat) -> None:
    chat.ask("help")
    other = open_chat("lead", path=chat.page.evaluate("location.pathname + location.search"))
    expect(other.notice).to_contain_text("This is not yours to see or to change.")
    expect(other.own).to_have_count(0)


def test_a_long_conversation_shows_its_end_first_and_the_rest_when_asked(chat: Chat) -> None:
    def long_thread(route: Route) -> None:
        stored = route.fetch().json()
        stamp = {"createdAt": stored["createdAt"]}
        stored["messages"] = [
            {"id": f"m{number}", "role": ("user", "assistant")[number % 2], "content": f"number {number}", **stamp}
            for number in range(200)
        ]
        route.fulfill(json=stored)

    chat.ask("help")
    chat.page.route("**/agent/threads/*", long_thread)
    chat.page.reload()
    expect(chat.answers.last).to_contain_text("number 199")
    expect(chat.own.first).to_have_text("number 140")
    expect(chat.answers.last).to_be_in_viewport()
    earlier = chat.button("Show earlier messages")
    for first in (80, 20, 0):
        earlier.click()
        expect(chat.own.first).to_have_text(f"number {first}")
    expect(earlier).to_be_hidden()


def test_what_another_window_did_is_there_when_one_comes_back(chat: Chat, open_chat: OpenChat) -> None:
    chat.ask("help")
    other = open_chat(path=chat.page.evaluate("location.pathname + location.search"))
    chat.ask("where is order 1042?")
    other.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(other.own).to_have_text(["help", "where is order 1042?"])


def test_models_can_be_chosen_where_the_site_offers_some(chat: Chat) -> None:
    models = [
        {"id": "swift", "label": "Swift", "available": True, "locked": False, "default": True},
        {"id": "gone", "label": "Gone", "available": False, "locked": False, "default": False},
    ]
    expect(chat.page.get_by_label("Model")).to_be_hidden()
    chat.page.route("**/agent/config", lambda route: route.fulfill(json={"models": {"enabled": True}}))
    chat.page.route("**/agent/models*", lambda route: route.fulfill(json=models))
    chat.page.reload()
    picker = chat.page.get_by_label("Model")
    expect(picker.get_by_role("option")).to_have_text(["Model: the usual one", "Model: Swift"])
    picker.select_option("swift")
    with chat.page.expect_request("**/agent/chat") as sent:
        chat.say("help")
    assert json.loads(sent.value.post_data or "{}")["model"] == "swift"
    expect(chat.notice).to_contain_text("This model is not available to you.")
    expect(chat.box).to_have_value("help")
