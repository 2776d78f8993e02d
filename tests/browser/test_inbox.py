"""A refund from the customer's wish to the shop's books: asked in the chat, approved in the admin, told in the chat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import OpenChat
from tests.demo_site import DemoSite, demo_site

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.once]

INBOX = "/admin/governance/approvals/"


@pytest.fixture(scope="module")
def site(demo_database: Callable[[], Path]) -> Iterator[DemoSite]:
    """A demo of its own: its orders are changed."""
    with demo_site(demo_database()) as running:
        yield running


def test_a_refund_is_asked_for_approved_with_a_key_carried_out_once_and_told(
    open_chat: OpenChat, site: DemoSite
) -> None:
    lead = open_chat(None, at=site).page
    lead.context.add_cookies(site.browser_cookies("lead"))  # type: ignore[arg-type]
    lead.goto(INBOX)
    expect(lead.get_by_text("Nothing is waiting for a decision.")).to_be_visible()
    expect(lead.get_by_text("With the chosen:")).to_be_hidden()

    customer = open_chat(at=site)
    customer.ask("refund order 1042")
    card = lead.locator("[data-gov-card]")
    expect(card).to_have_count(1)  # without a reload
    expect(card).to_contain_text("Refund order 1042")
    expect(card).to_contain_text("asked by Alice Moreno")
    expect(card).to_contain_text("$89.90 are paid back to the card ending in 4242.")
    expect(lead.locator(".gov-badge")).to_have_text("1")
    found = Axe().run(lead, context={"include": [".gov"]}, options={"preload": False}).response["violations"]
    assert [each["id"] for each in found if each["impact"] in {"serious", "critical"}] == []
    expect(lead.get_by_text("With the chosen:")).to_be_visible()

    lead.keyboard.press("j")
    lead.keyboard.press("a")
    expect(card).to_contain_text("Approved by Lena Brandt here in the console")
    expect(card).to_contain_text("Done.")
    expect(lead.locator(".gov-badge")).to_have_count(0)
    customer.wait_for_words("Order 1042")
    expect(customer.answers.last).to_contain_text("$89.90")

    lead.goto(f"{INBOX}?tab=decided")
    expect(lead.get_by_role("row", name="refund_order")).to_contain_text("approved")
    customer.ask("where is order 1042?")
    expect(customer.answers.last).to_contain_text("refunded")


def test_a_reason_is_asked_for_and_a_click_gives_it_again(open_chat: OpenChat, site: DemoSite) -> None:
    customer = open_chat(at=site)
    customer.ask("refund order 1023")
    lead = open_chat(None, at=site).page
    lead.context.add_cookies(site.browser_cookies("lead"))  # type: ignore[arg-type]
    lead.goto(INBOX)
    card = lead.locator("[data-gov-card]").first
    lead.keyboard.press("j")
    lead.keyboard.press("r")
    lead.keyboard.type("Too long ago.")
    card.get_by_role("button", name="Reject", exact=True).click()
    expect(card).to_contain_text("Rejected by Lena Brandt here in the console")
    expect(card).to_contain_text("Reason: Too long ago.")
    expect(customer.answers.last).to_contain_text("Too long ago.")


def test_a_card_that_another_one_holds_up_says_at_once_what_became_of_it(open_chat: OpenChat, site: DemoSite) -> None:
    customer = open_chat(at=site)
    customer.ask("refund order 1023")
    refund = customer.answers.first
    customer.say("cancel order 1043")  # which waits for the customer: nothing is told in the conversation meanwhile
    expect(customer.button("Cancel the order")).to_be_visible()
    lead = open_chat(None, at=site).page
    lead.context.add_cookies(site.browser_cookies("lead"))  # type: ignore[arg-type]
    lead.goto(INBOX)
    lead.get_by_role("button", name="Refund", exact=True).click()
    expect(lead.locator("[data-gov-card]").first).to_contain_text("Done.")
    expect(refund).to_contain_text("Approved.")
    expect(customer.button("Cancel the order")).to_be_visible()
    customer.button("Do not do it").click()
    customer.wait_for_words("Completed: Refund order 1023")
