"""The tutorial and the how-to pages, typed into the site that has followed the README."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.demo_site import said
from tests.packaging.host import ORDER, Host, follow
from tests.packaging.served import FORM, Visitor, frames, served
from tests.packaging.steps import Typed, Written, steps
from tests.workers.process import until

pytestmark = pytest.mark.xdist_group("packaging")

TUTORIAL = "docs/tutorial/getting-started.md"
REFUND = "docs/tutorial/an-approved-refund.md"
LEAD = ("lead@example.com", "change-me-42")
INBOX = "/admin/governance/approvals/"
STATUS = f"SELECT status FROM shop_order WHERE number = {ORDER}"
FILES = tuple(
    f"docs/how-to/{page}.md" for page in ("write-a-read-tool", "test-your-agents", "providers", "bound-history")
)


@pytest.fixture(scope="module")
def learner(host: Host, place: Path) -> Host:
    copy = host.copy(place / "learner")
    printed = follow(steps(TUTORIAL), copy.environment, copy.directory)
    return Host(copy.environment, copy.directory, copy.steps, printed)


def test_the_tutorials_own_tests_pass(learner: Host) -> None:
    printed = learner.printed["python manage.py test"]
    assert "Ran 2 tests" in printed
    assert printed.rstrip().endswith("OK") or "\nOK\n" in printed


def test_the_tutorials_second_tool_answers(learner: Host) -> None:
    with served(learner.server("daphne"), learner.environment, learner.directory) as visitor:
        visitor.sign_in()
        stream = visitor.ask("which orders do I have?")
        assert said(stream) == f"You have {ORDER} (on its way)."
        assert frames(stream, "tool-output")[0]["output"] == {
            "orders": [{"number": ORDER, "status": "on its way"}],
            "more": False,
        }
        assert said(visitor.ask(f"where is order {ORDER}?")) == f"Order {ORDER} is on its way."
        assert {tool["name"] for tool in visitor.read("/agent/tools")} == {"order_status", "list_orders"}


def test_a_refund_is_asked_for_approved_in_the_admin_carried_out_and_told(learner: Host, place: Path) -> None:
    copy = learner.copy(place / "refunder")
    printed = follow(steps(REFUND), copy.environment, copy.directory)
    assert "no issues" in printed["python manage.py check"]
    (server,) = (step for step in steps(REFUND) if isinstance(step, Typed) and "runserver" in step.words)
    with served(server, copy.environment, copy.directory) as visitor:
        visitor.sign_in()
        stream = visitor.ask(f"refund order {ORDER}")
        (asked,) = frames(stream, "approval-requested")
        assert asked["approver"] == "role:lead"
        assert copy.rows(STATUS) == [("on its way",)]

        lead = Visitor(visitor.port)
        lead.sign_in(*LEAD, at="/admin/login/?next=/admin/", to="/admin/")
        page = lead.request("GET", INBOX).body.decode()
        assert f"Refund order {ORDER}" in page
        card = dict(re.findall(r'<input type="hidden" name="(id|digest)" value="([^"]+)"', page))
        form = {**card, "act": "approve", "csrfmiddlewaretoken": lead.cookies["csrftoken"]}
        assert lead.request("POST", INBOX, urlencode(form), kind=FORM).status in {200, 302}
        thread = f"/agent/threads/{stream[0].data['threadId']}"
        until(lambda: visitor.read(thread)["messages"][-1]["content"].startswith("Completed: "))
        told = visitor.read(thread)["messages"][-1]["content"]
        assert told == f'Completed: Refund order {ORDER}. Result: {{"refunded": {ORDER}}}'
        assert copy.rows(STATUS) == [("refunded",)]
        assert lead.request("GET", "/admin/agent/thread/").status == 403


def test_what_the_how_to_pages_write_is_sound(learner: Host, place: Path) -> None:
    """Its tests pass, its tools and its provider have no fault that a check would find."""
    copy = learner.copy(place / "doer")
    written = [
        step for page in FILES for step in steps(page) if isinstance(step, Written) and "/shop/" in f"/{step.path}"
    ]
    assert {step.path for step in written} >= {"shop/agents.py", "shop/echo.py", "shop/prices.py", "shop/memory.py"}
    follow(list(written), copy.environment, copy.directory)
    printed = copy.manage("test", "shop")
    assert "OK" in printed.splitlines()
    assert "no issues" in copy.manage("check")
    copy.manage("shell", "-c", "from shop.prices import keep_prices; keep_prices()")
    assert copy.rows("SELECT model_id, source FROM agent_model_price") == [("gpt-5.6-luna", "by hand")]


@pytest.mark.parametrize("page", [*FILES[2:], "docs/how-to/asgi-and-nginx.md"])
def test_settings_of_the_pages_pass_the_checks(learner: Host, tmp_path: Path, page: str) -> None:
    copy = learner.copy(tmp_path / "mysite")
    written = [step for step in steps(page) if isinstance(step, Written) and step.path == "mysite/settings.py"]
    assert written
    for step in written:
        step.follow(copy.directory)
        assert "no issues" in copy.manage("check")


def test_the_servers_of_the_page_serve(learner: Host) -> None:
    typed = [step for step in steps("docs/how-to/asgi-and-nginx.md") if isinstance(step, Typed)]
    assert [step.words[2] for step in typed] == ["daphne", "uvicorn"]
    with served(typed[1], learner.environment, learner.directory) as visitor:
        visitor.sign_in()
        assert said(visitor.ask(f"where is order {ORDER}?")) == f"Order {ORDER} is on its way."
