"""A browser before the real demo. What a page writes to its console as an error fails the test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.chat import Chat
from tests.demo_site import DemoSite, demo_site

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = {"width": 1440, "height": 900}
# An answer that is no 200, and a server that is gone: the page tells both in its own words, which tests look at.
TOLD_OTHERWISE = ("Failed to load resource", "ERR_CONNECTION_REFUSED")

expect.set_options(timeout=30_000)  # the machine may be busy: time is no verdict

OpenChat = Callable[..., Chat]


def chromium() -> str:
    """Debian's browser, or the one that CHROMIUM names."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert found, "The browser tests need Chromium: apt-get install chromium, or CHROMIUM=/path/to/it"
    return found


@pytest.fixture(scope="package")
def site(demo_database: Callable[[], Path]) -> Iterator[DemoSite]:
    with demo_site(demo_database()) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Closed with each module: its event loop would be in the way of other tests of this process.
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def open_chat(site: DemoSite, browser: Browser) -> Iterator[OpenChat]:
    """Opens the chat as an account, in a window of its own; may be called again for a second one."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        # A refused request is the business of the test that caused it; everything else is a fault of the page.
        if message.type in {"error", "warning"} and not any(one in message.text for one in TOLD_OTHERWISE):
            complaints.append(message.text)

    def new_page(user: str | None, at: DemoSite, **options: object) -> Page:
        context = browser.new_context(**{"base_url": at.url, "viewport": DESKTOP, **options})  # type: ignore[arg-type]
        context.set_default_timeout(30_000)
        if user:
            context.add_cookies(at.browser_cookies(user))  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("console", listen)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    def open_as(user: str | None = "alice", path: str = "/", at: DemoSite = site, **options: object) -> Chat:
        page = new_page(user, at, **options)
        page.goto(path)
        if user:
            page.wait_for_selector("[data-ready]")
        return Chat(page)

    yield open_as
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def chat(open_chat: OpenChat) -> Chat:
    return open_chat()
