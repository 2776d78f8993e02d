"""An agent that another one has asked, as the reader sees it: its work below the call, then what it said."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.chat import Chat

pytestmark = pytest.mark.xdist_group("browser")

ANSWER = "goes warm light: a linen shade"
WATCH = """() => {
  window.seen = "";
  new MutationObserver(() => {
    const work = document.querySelector(".agent-delegate");
    if (work) window.seen = work.textContent;
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def test_the_work_of_another_agent_is_shown_below_the_call_and_kept_as_what_it_said(chat: Chat) -> None:
    chat.page.evaluate(WATCH)
    chat.ask("what goes with order 1042?")
    seen = chat.page.evaluate("window.seen")
    assert "Look up order" in seen  # the other agent's own call
    assert ANSWER in seen
    for _ in range(2):
        tool = chat.answers.last.locator(".agent-tool")
        expect(tool).to_have_count(1)
        expect(tool.locator("summary").first).to_contain_text("Ask stylist")
        expect(tool.locator(".agent-tool-note")).to_contain_text(ANSWER)
        expect(chat.last_text).to_contain_text("I asked our stylist.")
        chat.page.reload()
