"""The chat page in the words of somebody who uses it."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect


@dataclass(frozen=True, slots=True)
class Chat:
    page: Page

    @property
    def box(self) -> Locator:
        return self.page.get_by_label("Your message")

    @property
    def answers(self) -> Locator:
        return self.page.locator(".agent-turn")

    @property
    def own(self) -> Locator:
        return self.page.locator(".agent-own-text")

    @property
    def last_text(self) -> Locator:
        return self.answers.last.locator(".agent-text-body").last

    @property
    def notice(self) -> Locator:
        return self.page.locator(".agent-notice")

    @property
    def title(self) -> Locator:
        return self.page.locator("[data-title]")

    @property
    def conversations(self) -> Locator:
        return self.page.get_by_role("navigation", name="Conversations").get_by_role("link")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def say(self, text: str) -> None:
        """Type and send with Enter."""
        self.box.fill(text)
        self.box.press("Enter")

    def ask(self, text: str) -> None:
        """Send, and wait until the answer is whole and stored."""
        before = self.answers.count()
        self.say(text)
        expect(self.answers).to_have_count(before + 1)
        self.settled()

    def settled(self) -> None:
        """Nothing is being written, and the last answer can be acted on."""
        expect(self.page.locator("[data-agent-chat]")).not_to_have_attribute("data-busy", "")
        expect(self.answers.last.get_by_role("button", name="Helpful", exact=True)).to_be_attached()

    def wait_for_words(self, text: str) -> None:
        """Until the growing answer holds these words."""
        expect(self.last_text).to_contain_text(text)
