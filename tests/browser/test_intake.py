"""An agent that asks before it answers, as its user meets it: a form, the same after a reload, then the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenChat
from tests.demo_site import demo_site

pytestmark = pytest.mark.xdist_group("browser")


def test_questions_before_the_answer_stay_as_they_were_and_are_told(
    open_chat: OpenChat, demo_database: Callable[[], Path]
) -> None:
    with demo_site(demo_database(), DJANGO_SETTINGS_MODULE="tests.browser.asking_first.settings") as site:
        chat = open_chat(at=site)
        chat.say("A room, please.")
        form = chat.answers.last.get_by_role("form", name="A question to you")
        for _ in range(2):
            expect(form).to_contain_text("Two things before we begin.")
            expect(form.get_by_label("Room only")).to_be_checked()
            chat.page.reload()
        form.get_by_role("button", name="Skip").wait_for()
        form.get_by_role("button", name="Send answers").click()
        expect(form.get_by_role("alert").first).to_have_text("an answer is required")
        form.get_by_label("How many nights?").fill("3")
        form.get_by_label("Breakfast").check()
        form.get_by_role("button", name="Send answers").click()
        chat.wait_for_words("A room for 3 nights, breakfast: yes.")
        chat.settled()
        for _ in range(2):
            expect(chat.answers).to_have_count(1)
            expect(chat.answers.last.locator(".agent-tool-note")).to_have_text(
                "How many nights? 3\nWith breakfast? Breakfast"
            )
            chat.page.reload()
