"""An answer as the reader meets it: it grows, survives a reload and a lost connection, and can be stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest
from playwright.sync_api import Route, expect

from tests.browser.chat import Chat
from tests.browser.conftest import OpenChat
from tests.browser.line import line_to
from tests.demo_site import DemoSite

pytestmark = pytest.mark.xdist_group("browser")

Frame = Mapping[str, object]

COUNT = "count to 50 slowly"
WHOLE = " ".join(str(number) for number in range(1, 51))


def stream(*frames: Frame, end: str) -> str:
    """A stream's text on the wire."""
    numbered = "".join(f"id: {number}\ndata: {json.dumps(frame)}\n\n" for number, frame in enumerate(frames, 1))
    return f'event: meta\ndata: {{"runId":"r1","threadId":"t1"}}\n\n{numbered}{end}'


def answer_with(chat: Chat, *frames: Frame, end: str = "event: done\ndata: {}\n\n") -> None:
    """The next question gets this stream, whatever the server would have said."""
    headers = {"Content-Type": "text/event-stream", "X-Agent-Run-Id": "r1", "X-Agent-Thread-Id": "t1"}

    def fulfil(route: Route) -> None:
        route.fulfill(status=200, headers=headers, body=stream(*frames, end=end))

    chat.page.route("**/agent/chat", fulfil)


def test_where_is_order_1042(chat: Chat) -> None:
    chat.ask("Where is order 1042?")
    expect(chat.answers.last).to_contain_text("Order 1042 was delivered on")
    expect(chat.answers.last).to_contain_text("$89.90")
    tool = chat.answers.last.locator(".agent-tool")
    expect(tool.locator("summary")).to_have_text("Look up order 1042 · done")
    expect(tool.get_by_text("Brass desk lamp")).to_be_hidden()
    expect(tool).to_contain_text("Order 1042: delivered, 2 items, $89.90")
    tool.locator("summary").click()
    expect(tool.get_by_text("Brass desk lamp")).to_be_visible()
    expect(chat.title).to_have_text("Where is order 1042?")
    expect(chat.conversations.filter(has_text="Where is order 1042?").first).to_have_attribute("aria-current", "page")


def test_the_answer_grows_word_by_word_and_is_told_to_listeners_once(chat: Chat) -> None:
    status = chat.page.get_by_role("status").last
    chat.say(COUNT)
    chat.wait_for_words("1 2 3")
    first = chat.last_text.inner_text()
    assert WHOLE.startswith(first)
    assert first != WHOLE
    expect(status).to_have_text("")
    chat.settled()
    expect(chat.last_text).to_have_text(WHOLE)
    expect(status).to_have_text(f"Lantern Lane support answered: {WHOLE}")


def test_a_reload_in_mid_answer_goes_on_and_ends_whole_once(chat: Chat) -> None:
    chat.say(COUNT)
    chat.wait_for_words("1 2 3 4 5")
    chat.page.reload()
    chat.wait_for_words("1 2 3 4 5 6 7 8")
    expect(chat.button("Stop")).to_be_visible()
    chat.settled()
    expect(chat.last_text).to_have_text(WHOLE)
    expect(chat.answers).to_have_count(1)
    expect(chat.own).to_have_text([COUNT])


def test_a_lost_connection_is_taken_up_where_it_broke(site: DemoSite, open_chat: OpenChat) -> None:
    with line_to(site.url) as line:
        chat = open_chat(base_url=line.url)
        chat.say(COUNT)
        chat.wait_for_words("1 2 3")
        line.cut()
        expect(chat.notice).to_contain_text("The connection was lost.")
        expect(chat.button("Stop")).to_be_visible()
        line.mend()
        expect(chat.notice).to_have_count(0)
        chat.settled()
        expect(chat.last_text).to_have_text(WHOLE)
        chat.page.context.close()


@pytest.mark.parametrize("how", ["button", "Escape"])
def test_stop_ends_the_answer_and_keeps_what_was_said(chat: Chat, how: str) -> None:
    chat.say(COUNT)
    chat.wait_for_words("1 2 3")
    if how == "button":
        chat.button("Stop").click()
    else:
        chat.page.keyboard.press("Escape")
    expect(chat.answers.last).to_contain_text("This answer was stopped.")
    expect(chat.button("Send")).to_be_visible()
    expect(chat.box).to_be_focused()
    assert not chat.last_text.inner_text().endswith("50")
    chat.page.reload()
    expect(chat.answers.last.get_by_text("This answer was stopped.")).to_have_count(1)
    expect(chat.title).to_have_text(COUNT)
    chat.ask("help")
    expect(chat.answers.last).to_contain_text("where is order 1042?")


def test_what_a_tool_refuses_is_said_in_words(chat: Chat) -> None:
    chat.ask("where is order 1001?")
    expect(chat.answers.last.locator(".agent-tool-status")).to_have_text("did not work")
    expect(chat.last_text).to_contain_text("There is no order 1001 on this account.")


def test_a_failed_run_is_told_in_words_with_a_way_on(chat: Chat) -> None:
    failure = {"code": "model_no_output", "message": "raw words of the server"}
    answer_with(chat, {"kind": "step-start"}, end=f"event: error\ndata: {json.dumps(failure)}\n\n")
    chat.say("hello")
    expect(chat.notice).to_contain_text("The model gave no answer.")
    expect(chat.notice.get_by_role("button", name="Try again")).to_be_visible()
    expect(chat.answers).to_have_count(0)


def test_frames_of_an_unknown_kind_are_passed_over_and_a_restarted_step_is_dropped(chat: Chat) -> None:
    answer_with(
        chat,
        {"kind": "step-start"},
        {"kind": "from-the-future", "text": "no"},
        {"kind": "text", "text": "half a sen"},
        {"kind": "step-restart", "step": 0, "attempt": 2},
        {"kind": "text", "text": "A whole sentence."},
    )
    chat.say("hello")
    expect(chat.last_text).to_have_text("A whole sentence.")
    expect(chat.answers.last).not_to_contain_text("half")


def test_a_step_that_was_never_opened_begins_anew_and_leaves_the_one_before_it(chat: Chat) -> None:
    answer_with(
        chat,
        {"kind": "step-start"},
        {"kind": "text", "text": "I look it up."},
        {"kind": "tool-input-start", "id": "c1", "name": "look_up", "toolKind": "read"},
        {"kind": "tool-input-available", "id": "c1", "name": "look_up", "toolKind": "read", "input": {}},
        {"kind": "tool-output", "id": "c1", "output": "found"},
        {"kind": "step-restart", "step": 1, "attempt": 2},
        {"kind": "text", "text": "Here it is."},
    )
    chat.say("hello")
    expect(chat.last_text).to_have_text("Here it is.")
    expect(chat.answers.last).to_contain_text("I look it up.")
    expect(chat.answers.last.locator(".agent-tool-status")).to_have_count(1)


def test_a_component_that_is_not_drawn_says_its_words_and_can_be_withdrawn(chat: Chat) -> None:
    drawn: Frame = {"kind": "ui", "id": "u1", "component": "chart", "props": {"a": 1}, "fallbackText": "Sales went up."}
    answer_with(chat, {"kind": "step-start"}, drawn)
    chat.say("hello")
    expect(chat.answers.last).to_contain_text("Sales went up.")
    chat.page.unroute("**/agent/chat")
    answer_with(chat, {"kind": "step-start"}, {"kind": "text", "text": "Well."}, drawn, {**drawn, "props": {}})
    chat.say("hello")
    expect(chat.last_text).to_have_text("Well.")
    expect(chat.answers.last).not_to_contain_text("Sales")


def test_the_text_of_a_model_is_text_and_never_markup(chat: Chat) -> None:
    hostile = (
        "<img src=x onerror=alert(1)> **bold** [bad](javascript:alert(1)) [good](https://shop.example/a?b=1)\n\n"
        "- one\n- two `code <b>`\n\n```html\n<script>alert(1)</script>\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    answer_with(chat, {"kind": "step-start"}, *({"kind": "text", "text": sign} for sign in hostile))
    chat.say("hello")
    body = chat.last_text
    expect(body.locator("table td")).to_have_text(["1", "2"])
    expect(body.locator("strong")).to_have_text("bold")
    expect(body.locator("li")).to_have_text(["one", "two code <b>"])
    expect(body.locator("pre")).to_have_text("<script>alert(1)</script>")
    expect(body.locator("img, script, b")).to_have_count(0)
    expect(body.get_by_role("link")).to_have_text(["good"])
    expect(body.get_by_role("link")).to_have_attribute("rel", re.compile("noopener"))
    expect(body).to_contain_text("[bad](javascript:alert(1))")


def test_what_may_be_asked_next_is_one_click_and_leaves_the_box_alone(chat: Chat) -> None:
    def suggest(route: Route) -> None:
        detail = route.fetch().json()
        if detail["messages"][-1]["role"] == "assistant":
            detail["messages"][-1]["followUps"] = ["Where is order 1043?", "<b>And 1044?</b>"]
        route.fulfill(json=detail)

    chat.page.route(re.compile(r"/threads/[^/]+$"), suggest)
    chat.ask("Where is order 1042?")
    suggested = chat.page.get_by_role("list", name="What you may ask next")
    expect(suggested.get_by_role("button")).to_have_text(["Where is order 1043?", "<b>And 1044?</b>"])
    chat.box.fill("half a thought")
    suggested.get_by_role("button").first.click()
    expect(chat.answers).to_have_count(2)
    chat.settled()
    expect(chat.own.last).to_have_text("Where is order 1043?")
    expect(chat.box).to_have_value("half a thought")
    expect(suggested).to_have_count(1)  # those of the answer before are hidden
