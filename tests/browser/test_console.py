"""The console in a browser: every screen for everybody, every figure a door, and news as they come."""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from governance.admin.console.navigation import SCREENS
from tests.browser.conftest import DESKTOP
from tests.browser.test_access import PHONE, overflow
from tests.demo_site import DemoSite, demo_site, filled

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.once]

CONSOLE = "/admin/governance"
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def rows(demo_database: Callable[[], Path]) -> Path:
    return filled(demo_database(), rows=900)


@pytest.fixture(scope="module")
def busy(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoSite]:
    """A demo with some weeks behind it, on a copy of the rows."""
    with demo_site(Path(shutil.copy(rows, tmp_path_factory.mktemp("console")))) as site:
        yield site


@pytest.fixture
def opened(busy: DemoSite, browser: Browser) -> Iterator[Open]:
    """Opens a page of the console as an account; what breaks the content security policy fails the test."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(path: str, user: str = "admin", **options: object) -> Page:
        context = browser.new_context(**{"base_url": busy.url, "viewport": DESKTOP, **options})  # type: ignore[arg-type]
        context.set_default_timeout(30_000)
        context.add_cookies(busy.browser_cookies(user))  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [each for each in complaints if "Failed to load resource" not in each] == []


def serious(page: Page) -> list[str]:
    """What keeps people out of our part of the page; the head and the side of it are the admin's."""
    found = Axe().run(page, context={"include": [".gov"]}, options={"preload": False}).response["violations"]
    return [
        f"{each['id']}: {[node['target'] for node in each['nodes']]}"
        for each in found
        if each["impact"] in {"serious", "critical"}
    ]


def answer(page: Page) -> str:
    return page.locator(".gov-figure").inner_text()


@pytest.mark.parametrize(
    ("scheme", "viewport"), [("light", DESKTOP), ("dark", PHONE)], ids=["light-desktop", "dark-phone"]
)
def test_every_screen_is_for_everybody(opened: Open, scheme: str, viewport: dict[str, int]) -> None:
    page = opened(f"{CONSOLE}/spend/", color_scheme=scheme, viewport=viewport)
    bar = page.get_by_role("navigation", name="Console").get_by_role("link")
    addresses = [link.get_attribute("href") for link in bar.all()]
    assert len(addresses) >= len(SCREENS) - 1  # the inbox may be another's
    for address in addresses:
        page.goto(str(address))
        expect(page.locator(".gov h1")).to_be_visible()
        expect(page.locator(".gov-failed")).to_have_count(0)
        assert overflow(page) == 0, address
        assert serious(page) == [], address
    for name in ("threads", "runs"):
        page.goto(f"{CONSOLE}/{name}/")
        page.locator(".gov-table tbody th a").last.click()
        expect(page.locator(".gov-failed")).to_have_count(0)
        assert overflow(page) == 0, page.url
        assert serious(page) == [], page.url


def test_a_figure_leads_to_its_rows_and_the_browser_leads_back(opened: Open) -> None:
    page = opened(f"{CONSOLE}/spend/")
    whole, start_url = answer(page), page.url
    page.get_by_role("link", name=re.compile("unpriced and not in the sum")).click()
    expect(page).to_have_url(re.compile(r"usage/\?.*priced=no"))
    expect(page.locator(".gov-table tbody tr").first).to_contain_text("unpriced")
    page.go_back()
    assert (answer(page), page.url) == (whole, start_url)
    page.locator("tbody").filter(has_text="large-4").first.get_by_role("link", name="large-4").click()
    expect(page).to_have_url(re.compile("model=large-4"))
    expect(page.locator(".gov-filters summary")).to_contain_text("model large-4")


def test_the_chart_is_read_and_followed_by_keyboard(opened: Open) -> None:
    page = opened(f"{CONSOLE}/spend/")
    columns = page.locator(".gov-column")
    expect(page.locator('.gov-column[tabindex="0"]')).to_have_count(1)
    columns.first.focus()
    readout = page.locator("[data-gov-readout]")
    first = readout.inner_text()
    page.keyboard.press("ArrowRight")
    assert readout.inner_text() != first
    assert re.search(r"\$", readout.inner_text())
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    told = readout.inner_text()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"fromDay=(\S+)&toDay=\1"))
    assert answer(page) in told


def test_the_file_adds_up_to_the_page(opened: Open) -> None:
    page = opened(f"{CONSOLE}/spend/", "finance")
    exact = str(page.locator(".gov-figure [title]").get_attribute("title"))
    page.locator(".gov-figure a").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    total = sum((Decimal(row["costUsd"]) for row in rows if row["priced"] == "yes"), Decimal(0))
    assert total == Decimal(exact.strip("$").replace(",", ""))


def test_own_days_and_a_filter_make_an_address_to_share(opened: Open) -> None:
    page = opened(f"{CONSOLE}/spend/")
    page.locator(".gov-own-days summary").click()
    page.get_by_role("button", name="Show").first.click()
    page.locator(".gov-filters summary").click()
    page.get_by_label("Agent").fill("shop")
    page.get_by_label("Agent").press("Enter")
    shown = answer(page)
    other = opened(page.evaluate("location.pathname + location.search"))
    assert answer(other) == shown
    expect(other.locator(".gov-filters summary")).to_contain_text("shop")


def test_from_right_to_left_it_stays_in_order(opened: Open) -> None:
    page = opened(f"{CONSOLE}/spend/", locale="ar")
    assert page.evaluate("document.documentElement.dir") == "rtl"
    assert overflow(page) == 0
    assert serious(page) == []


def test_live_shows_what_happens_as_it_happens(opened: Open, busy: DemoSite) -> None:
    page = opened(f"{CONSOLE}/live/")
    expect(page.get_by_role("status")).to_contain_text("Live: this page follows")
    busy.ask("where is order 1042?")
    expect(page.locator(".gov-tail")).to_contain_text("run.started")
    expect(page.locator(".gov-tail")).to_contain_text("run.finished")
    expect(page.locator("[data-gov-refreshed] tbody tr").first).to_contain_text("shop")
    with busy.opened("GET", "/governance/api/stream", user="admin") as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        assert stream.readline() == b"event: open\n"


def test_under_another_theme_it_is_at_home(rows: Path, tmp_path: Path, browser: Browser) -> None:
    with demo_site(Path(shutil.copy(rows, tmp_path)), DJANGO_SETTINGS_MODULE="tests.browser.unfold_settings") as site:
        context = browser.new_context(base_url=site.url, viewport=DESKTOP)  # type: ignore[arg-type]
        context.add_cookies(site.browser_cookies("admin"))  # type: ignore[arg-type]
        page = context.new_page()
        for name in ("spend", "runs", "prices"):
            page.goto(f"{CONSOLE}/{name}/")
            expect(page.locator(".gov-figure")).to_be_visible()
            expect(page.locator(".gov-failed")).to_have_count(0)
            assert overflow(page) == 0
            assert serious(page) == []
        context.close()
