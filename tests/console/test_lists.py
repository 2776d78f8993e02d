"""Usage rows, runs, conversations, tools: what they answer, where their figures lead, and one of each in detail."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agent.domain.queue import QueuePause
from agent.models import Message, ToolCall
from agent.store import get_store
from tests.console.conftest import SignIn
from tests.console.pages import html, links, text
from tests.governance.rows import NOON, entry, run, thread

pytestmark = pytest.mark.django_db

USAGE, RUNS = "/admin/governance/usage/", "/admin/governance/runs/"
THREADS, TOOLS = "/admin/governance/threads/", "/admin/governance/tools/"
JUNE: dict[str, Any] = {"fromDay": "2026-06-01", "toDay": "2026-06-30"}
SECRET = "tell-nobody-42"


@pytest.fixture
def operator(staff: SignIn) -> Client:
    return staff("governance.view_reliability")


@pytest.fixture
def reader(staff: SignIn) -> Client:
    return staff("governance.view_reliability", "governance.view_spend", "governance.view_conversations")


def call(message: Message, **fields: Any) -> ToolCall:
    values: dict[str, Any] = {
        "provider_call_id": f"call-{ToolCall.objects.count()}",
        "message": message,
        "thread_id": message.thread_id,
        "actor_ref": "ana",
        "tool_name": "look_up",
        "tool_type": "read",
        "input": {},
        "status": "auto_executed",
        "created_at": NOON,
        "settled_at": NOON,
        "execution_ms": 20,
    }
    return ToolCall.objects.create(**(values | fields))


def talk(**fields: Any) -> Message:
    """A conversation with one message."""
    held = thread(title=SECRET, **fields)
    values = {"thread": held, "seq": 1, "role": "user", "content": SECRET, "created_at": NOON}
    return Message.objects.create(**values)


# ---- usage rows --------------------------------------------------------------------------------------------------


def test_a_row_says_who_priced_it(finance: Client) -> None:
    entry(reported_cost_nanos=5 * 10**9)
    entry(estimated_cost_nanos=2 * 10**9)
    entry(estimated_cost_nanos=None, model_id="gpt x&y")
    page = text(finance, USAGE, **JUNE)
    assert "3 calls of models in the ledger" in page
    assert "$5.00 provider" in page
    assert "$2.00 price list" in page
    assert "unpriced no price: add one" in page


@pytest.mark.parametrize(("asked", "count"), [({"priced": "no"}, 1), ({"source": "reported"}, 1), ({"runId": "r"}, 0)])
def test_rows_are_narrowed_and_the_way_back_is_there(finance: Client, asked: dict[str, Any], count: int) -> None:
    entry(reported_cost_nanos=5)
    entry(estimated_cost_nanos=None)
    page = text(finance, USAGE, **JUNE, **asked)
    assert f"days in UTC {count} calls of models" in page
    assert "×" in page


def test_pages_lead_on_and_back(finance: Client) -> None:
    for number in range(30):
        entry(NOON - timedelta(minutes=number))
    first = html(finance, USAGE, **JUNE)
    assert "1–25 of 30" in first
    older = next(url for url in links(first) if "page=2" in url)
    second = html(finance, USAGE + older)
    assert "26–30 of 30" in second
    assert any("page=1" in url for url in links(second))


@pytest.mark.parametrize("wrong", [{"page": "0"}, {"page": "x"}, {"page": "401"}, {"cursor": "?"}, {"priced": "maybe"}])
def test_a_place_that_is_not_there_is_refused_in_words(finance: Client, wrong: dict[str, str]) -> None:
    assert "not understood" in text(finance, USAGE, status=400, **JUNE, **wrong)


# ---- runs --------------------------------------------------------------------------------------------------------


def test_the_answer_is_the_rate_against_the_days_before(operator: Client) -> None:
    for _number in range(3):
        run()
    run(status="failed", error_code="quota_exceeded")
    run(NOON - timedelta(days=30))
    page = text(operator, RUNS, **JUNE)
    assert "75.0 % of 4 runs finished (was 100.0 %)" in page
    assert "quota_exceeded 1" in page
    assert "$" not in page


def test_an_error_leads_to_its_runs(operator: Client) -> None:
    bad = run(status="failed", error_code=None)
    run()
    page = html(operator, RUNS, **JUNE)
    url = next(url for url in links(page) if "errorCode=%28none%29" in url)
    listed = html(operator, RUNS + url.partition("#")[0])
    assert bad.pk in listed
    assert "unclassified" in listed
    assert "1–1 of 1" in listed


def test_runs_by_prompt_show_whether_a_change_of_it_is_the_cause(operator: Client) -> None:
    old, new = "aa" * 32, "bb" * 32
    run(NOON - timedelta(days=2), prompt_hash=old)
    run(prompt_hash=new)
    run(prompt_hash=new, status="failed")
    page = text(operator, RUNS, by="prompt", **JUNE)
    told = page[page.index("first seen") :]
    assert told.index("bbbbbbbb (default) 15 Jun 12:00 2 1 1 50.0 %") < told.index("aaaaaaaa (default)")
    url = next(url for url in links(html(operator, RUNS, by="prompt", **JUNE)) if f"promptHash={new}" in url)
    assert "1–2 of 2" in html(operator, RUNS + url.partition("#")[0])
    assert operator.get(RUNS, {"by": "moon"}).status_code == 400


def test_no_runs_is_said(operator: Client) -> None:
    assert "No runs in this range." in text(operator, RUNS, **JUNE)


def test_a_run_is_told_as_a_story_with_its_cost_and_its_children_for_who_may(operator: Client, reader: Client) -> None:
    message = talk(id="thread-1")
    parent = run(prompt_hash="ab" * 32, error_message=None)
    child = run(parent_run_id=parent.pk)
    entry(run_id=parent.pk, estimated_cost_nanos=2 * 10**9)
    entry(run_id=child.pk, estimated_cost_nanos=3 * 10**9)
    call(message, run_id=parent.pk)
    url = reverse("admin:governance_run", args=[parent.pk])
    whole = text(reader, url)
    assert "completed Completed in 1.0 s. $5.00 with the runs it asked for" in whole
    assert SECRET in whole
    assert "look_up" in whole
    assert any(f"promptHash={parent.prompt_hash}" in link for link in links(html(reader, url)))
    plain = text(operator, url)
    assert "$" not in plain
    assert SECRET not in plain
    assert "Conversation thread-1" in plain


@pytest.mark.parametrize("name", ["run", "thread"])
def test_what_is_not_there_is_404(reader: Client, name: str) -> None:
    assert reader.get(reverse(f"admin:governance_{name}", args=["not-there"])).status_code == 404


def test_another_tenants_run_and_conversation_are_404(reader: Client, settings: Any) -> None:
    message, hidden = talk(tenant_ref="south"), run(tenant_ref="south")
    settings.AGENT = {"CONSOLE_SCOPE": "tests.console.test_shell.only_north"}
    assert reader.get(reverse("admin:governance_run", args=[hidden.pk])).status_code == 404
    assert reader.get(reverse("admin:governance_thread", args=[message.thread_id])).status_code == 404


# ---- conversations -----------------------------------------------------------------------------------------------


def test_conversations_are_listed_with_what_they_cost_for_who_may(operator: Client, reader: Client) -> None:
    message = talk()
    entry(thread_id=message.thread_id, estimated_cost_nanos=4 * 10**9)
    assert f"{SECRET} ana" in text(reader, THREADS, **JUNE)
    assert "$4.00" in text(reader, THREADS, **JUNE)
    plain = text(operator, THREADS, **JUNE)
    assert f"Conversation {message.thread_id[:8]}" in plain
    assert SECRET not in plain
    assert "$" not in plain


def test_looking_for_a_title_needs_the_right_to_read_it(operator: Client, reader: Client) -> None:
    talk()
    assert operator.get(THREADS, JUNE | {"title": "nobody"}).status_code == 403
    assert "1 conversations" in text(reader, THREADS, title="nobody", **JUNE)


def test_a_conversation_shows_its_messages_to_who_may_read_them(operator: Client, reader: Client) -> None:
    message = talk()
    run(thread_id=message.thread_id)
    call(message)
    url = reverse("admin:governance_thread", args=[message.thread_id])
    assert text(reader, url).count(SECRET) >= 2
    plain = text(operator, url)
    assert SECRET not in plain
    assert "permission to view conversations" in plain
    assert "Calls: carried out 1" in plain


def test_a_deleted_conversation_is_marked(reader: Client) -> None:
    message = talk(deleted_at=NOON)
    assert "deleted" in text(reader, THREADS, **JUNE)
    url = reverse("admin:governance_thread", args=[message.thread_id])
    assert "deleted by its owner" in text(reader, url)


# ---- tools -------------------------------------------------------------------------------------------------------


def test_tools_say_how_often_they_fail_and_lead_to_those_calls(operator: Client) -> None:
    message = talk()
    for _number in range(3):
        call(message)
    call(message, status="failed", error=SECRET)
    page = html(operator, TOOLS, **JUNE)
    assert "most failures: look_up 1 (25.0 %)" in page
    assert SECRET not in page
    url = next(url for url in links(page) if "status=failed" in url)
    assert "1–1 of 1" in html(operator, TOOLS + url.partition("#")[0])


# ---- all of them -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", [USAGE, RUNS, THREADS, TOOLS])
def test_the_number_of_queries_does_not_grow_with_the_rows(reader: Client, url: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            html(reader, url, **JUNE)
        return len(captured)

    def fill() -> None:
        message = talk()
        one = run(thread_id=message.thread_id)
        entry(thread_id=message.thread_id, run_id=one.pk)
        call(message, run_id=one.pk)

    fill()
    few = queries()
    for _number in range(12):
        fill()
    assert queries() == few


def test_the_number_of_queries_of_one_run_and_one_conversation_is_fixed(reader: Client) -> None:
    message = talk()
    one = run(thread_id=message.thread_id)

    def queries(name: str, pk: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            html(reader, reverse(f"admin:governance_{name}", args=[pk]))
        return len(captured)

    def fill() -> None:
        run(thread_id=message.thread_id, parent_run_id=one.pk)
        entry(thread_id=message.thread_id, run_id=one.pk)
        call(message, run_id=one.pk)

    fill()
    few = queries("run", one.pk), queries("thread", message.thread_id)
    for _number in range(5):
        fill()
    assert (queries("run", one.pk), queries("thread", message.thread_id)) == few


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("run_failed", "the last answer failed"),
        ("cancelled", "the last answer was stopped"),
        ("quota_exceeded", "a limit is reached"),
        ("start_failed", "the next message could not be started"),
        ("of-a-later-release", "of-a-later-release"),
    ],
)
def test_a_conversation_says_why_its_messages_wait(operator: Client, reason: str, told: str) -> None:
    paused = thread()
    get_store().set_queue_pause(paused.pk, QueuePause(reason=reason, at="2026-06-15T12:00:00.000Z"))
    assert f"Messages that wait 0 paused: {told}" in text(operator, f"{THREADS}{paused.pk}/", **JUNE)


@pytest.mark.parametrize("url", [USAGE, RUNS, THREADS, TOOLS, "/admin/governance/spend/"])
def test_people_are_shown_by_name_and_looked_up_once_a_page(
    admin_client: Client, settings: Any, django_user_model: Any, url: str
) -> None:
    settings.AGENT = {**settings.AGENT, "ACTOR_DIRECTORY": f"{__name__}.Directory"}
    for ref in ("ana", "ben"):
        said = talk(actor_ref=ref)
        entry(actor_ref=ref, thread_id=said.thread_id)
        call(said, actor_ref=ref, run_id=run(thread_id=said.thread_id, actor_ref=ref).pk)
    Directory.asked.clear()
    page = text(admin_client, url, **JUNE)
    assert "Ana Ruiz" in page
    assert "ben" in page  # whom nobody knows by another name
    assert Directory.asked == [{"ana", "ben"}]


class Directory:
    asked: ClassVar[list[set[str]]] = []

    def labels(self, refs: set[str]) -> dict[str, str]:
        self.asked.append(set(refs))
        return {"ana": "Ana Ruiz"}
