"""Take the pictures of the documentation from a fresh demo: `.venv/bin/python -m docs.take_screenshots`."""
# ruff: noqa: INP001

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.chat import Chat
from tests.browser.conftest import FLAGS, chromium
from tests.demo_site import DemoSite, demo_site, filled, prepared

IMAGES = Path(__file__).parent / "images"
VIEWPORT = {"width": 1200, "height": 760}
CONSOLE = {"width": 1200, "height": 900}
WITHOUT_SIDEBAR = "document.querySelectorAll('#nav-sidebar, #toggle-nav-sidebar').forEach((one) => one.remove())"


def take_chat(site: DemoSite) -> None:
    """The support desk after two questions, the tool call of the first one unfolded."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        context = browser.new_context(base_url=site.url, viewport=VIEWPORT)  # type: ignore[arg-type]
        context.add_cookies(site.browser_cookies("alice"))  # type: ignore[arg-type]
        chat = Chat(context.new_page())
        for question in ("What happened to order 1043?", "List my orders", "Where is order 1042?"):
            chat.page.goto("/")
            chat.page.wait_for_selector("[data-ready]")
            chat.ask(question)
        chat.ask("And what is in 1043?")
        chat.page.mouse.move(0, 0)
        chat.page.screenshot(path=IMAGES / "chat.png")
        browser.close()


def take_refund(site: DemoSite) -> None:
    """A refund on its way: asked for by alice, approved by the lead, carried out, told in the chat."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        customer = browser.new_context(base_url=site.url, viewport=VIEWPORT)  # type: ignore[arg-type]
        customer.add_cookies(site.browser_cookies("alice"))  # type: ignore[arg-type]
        first, second = Chat(customer.new_page()), Chat(customer.new_page())
        for chat, order in ((first, 1042), (second, 1023)):
            chat.page.goto("/")
            chat.page.wait_for_selector("[data-ready]")
            chat.ask(f"refund order {order}")
        lead = browser.new_context(base_url=site.url, viewport=CONSOLE)  # type: ignore[arg-type]
        lead.add_cookies(site.browser_cookies("lead"))  # type: ignore[arg-type]
        inbox = lead.new_page()
        inbox.goto("/admin/governance/approvals/")
        inbox.evaluate(WITHOUT_SIDEBAR)
        inbox.keyboard.press("j")
        inbox.keyboard.press("a")
        inbox.get_by_text("Done.").wait_for()
        inbox.screenshot(path=IMAGES / "inbox.png")
        first.wait_for_words("Order 1042")
        first.page.mouse.move(0, 0)
        first.page.screenshot(path=IMAGES / "refunded.png")
        browser.close()


def take_console(site: DemoSite) -> None:
    """What finance opens on the first working day of a month, and whether it all worked."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        context = browser.new_context(base_url=site.url, viewport=CONSOLE)  # type: ignore[arg-type]
        context.add_cookies(site.browser_cookies("admin"))  # type: ignore[arg-type]
        page = context.new_page()
        for name in ("spend", "runs"):
            page.goto(f"/admin/governance/{name}/")
            page.evaluate(WITHOUT_SIDEBAR)
            page.screenshot(path=IMAGES / f"console-{name}.png")
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory, demo_site(prepared(Path(directory))) as running:
        take_chat(running)
    with tempfile.TemporaryDirectory() as directory, demo_site(prepared(Path(directory))) as running:
        take_refund(running)
    with tempfile.TemporaryDirectory() as place, demo_site(filled(prepared(Path(place)), rows=20_000)) as running:
        take_console(running)
