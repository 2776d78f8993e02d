"""For everybody: keyboard, screen readers, dark and light, a phone, and a strict content security policy."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.chat import Chat
from tests.browser.conftest import DESKTOP, OpenChat

pytestmark = pytest.mark.xdist_group("browser")

PHONE = {"width": 390, "height": 844}
LOOKS = [("light", DESKTOP), ("dark", PHONE)]  # colours do not depend on the width, nor the lines on colours


def serious(page: Page) -> list[str]:
    """The findings of axe that keep people out."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']} ({each['impact']}): {[node['target'] for node in each['nodes']]}"
        for each in found
        if each["impact"] in {"serious", "critical"}
    ]


def overflow(page: Page) -> int:
    width: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return width


@pytest.mark.parametrize(("scheme", "viewport"), LOOKS, ids=["light-desktop", "dark-phone"])
def test_nothing_serious_for_axe_and_no_sideways_scrolling(
    open_chat: OpenChat, scheme: str, viewport: dict[str, int]
) -> None:
    stranger = open_chat(None, path="/login/", color_scheme=scheme, viewport=viewport)
    assert serious(stranger.page) == []
    assert overflow(stranger.page) == 0
    chat = open_chat(color_scheme=scheme, viewport=viewport)
    assert serious(chat.page) == []
    chat.ask("where is order 1042?")
    chat.ask("where is order 1001?")
    chat.ask("help")
    for fold in chat.page.locator(".agent-message summary").all():
        fold.click()
    assert serious(chat.page) == []
    assert overflow(chat.page) == 0
    chat.say("count to 50 slowly")
    chat.wait_for_words("1 2")
    assert serious(chat.page) == []
    chat.page.keyboard.press("Escape")
    expect(chat.answers.last).to_contain_text("This answer was stopped.")
    assert serious(chat.page) == []


def test_an_explicit_theme_wins_over_the_systems(open_chat: OpenChat) -> None:
    chat = open_chat(color_scheme="dark")
    background = "getComputedStyle(document.querySelector('.agent-chat')).backgroundColor"
    dark = chat.page.evaluate(background)
    chat.page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert chat.page.evaluate(background) == "rgb(255, 255, 255)" != dark


def test_a_long_word_and_a_wide_table_stay_inside_a_phone(open_chat: OpenChat) -> None:
    chat = open_chat(viewport=PHONE)
    chat.ask("W" * 400)
    assert overflow(chat.page) == 0
    expect(chat.own.last).to_be_in_viewport()


def test_on_a_phone_the_conversations_are_in_a_drawer(open_chat: OpenChat) -> None:
    chat = open_chat(viewport=PHONE)
    chat.ask("help")
    chat.ask("where is order 1042?")
    opener = chat.page.get_by_role("button", name="Conversations")
    expect(chat.button("New conversation")).to_be_hidden()
    opener.click()
    expect(chat.button("Close")).to_be_focused()
    assert serious(chat.page) == []
    chat.page.keyboard.press("Escape")
    expect(chat.button("New conversation")).to_be_hidden()
    expect(opener).to_be_focused()
    opener.click()
    chat.button("New conversation").click()
    expect(chat.title).to_have_text("New conversation")
    expect(chat.own).to_have_count(0)


def test_the_whole_conversation_by_keyboard(chat: Chat) -> None:
    keyboard = chat.page.keyboard
    expect(chat.box).to_be_focused()
    keyboard.type("where is order 1042?")
    keyboard.press("Shift+Enter")
    keyboard.type("and 1043?")
    expect(chat.box).to_have_value("where is order 1042?\nand 1043?")
    keyboard.press("Enter")
    chat.settled()
    expect(chat.last_text).to_contain_text("Order 1043 is on its way")
    expect(chat.box).to_be_focused()
    chat.page.locator(".agent-tool summary").first.focus()
    keyboard.press("Enter")
    expect(chat.page.get_by_text("Brass desk lamp").first).to_be_visible()


def test_enter_that_chooses_a_word_of_an_input_method_does_not_send(chat: Chat) -> None:
    chat.box.fill("こんにちは")
    chat.box.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    expect(chat.own).to_have_count(0)
    expect(chat.box).to_have_value("こんにちは")


def test_landmarks_and_names(chat: Chat) -> None:
    chat.ask("help")
    page = chat.page
    expect(page.get_by_role("main")).to_have_count(1)
    expect(page.get_by_role("navigation", name="Conversations")).to_be_visible()
    expect(page.get_by_role("region", name="Messages")).to_be_visible()
    expect(page.get_by_role("region", name="help")).to_be_visible()
    expect(chat.answers.last).to_contain_text("Lantern Lane support said:")


def test_the_policy_of_the_demo_forbids_everything_from_elsewhere(open_chat: OpenChat) -> None:
    page = open_chat(None, path="/login/").page
    answer = page.request.get("/login/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
