"""The page of runs: who has them in hand, one told as a story, and the way to stop it. Each for who may."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import path, reverse
from django.utils import timezone

import agent.admin
from agent.admin.durations import took
from agent.domain.commands import NewPrice
from agent.flows.admission import chat
from agent.flows.starts import Send
from agent.models import Run, RunStep, StreamFrame, Thread, ToolCall, UsageEntry
from agent.providers.scripted import ScriptedProvider, ScriptedReply, call
from agent.registry import agent as declare
from agent.registry import isolated_registry, tool
from agent.store import get_store
from agent.testing.turns import TESTER, HeldRunner, drive_run, held_runner

ops = admin.AdminSite(name="ops")
agent.admin.register(ops)
urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

SECRET = "tell-nobody-42"
SignIn = Callable[..., Client]


@pytest.fixture
def runner(settings: Any) -> Iterator[HeldRunner]:
    def script(request: Any) -> ScriptedReply:
        if request.messages[-1].tool_results:
            return ScriptedReply(f"Done. {SECRET}", model_id="model-a")
        calls = [call("look_up", "a", word=SECRET), call("look_up", "b", word="bad")]
        return ScriptedReply(f"{SECRET} Looking.", calls=calls, model_id="model-a")

    settings.AGENT = {"PROVIDERS": {"scripted": ScriptedProvider(script)}}
    with isolated_registry(), held_runner() as held:

        @tool
        def look_up(word: str) -> str:
            """Look a word up."""
            if word == "bad":
                raise ValueError(SECRET)
            return f"found {SECRET}"

        declare(name="shop", prompt=SECRET, tools=[look_up])(type("Shop", (), {}))
        yield held


@pytest.fixture
def staff() -> SignIn:
    def sign_in(*permissions: str) -> Client:
        user = User.objects.create_user(f"staff{User.objects.count()}", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def superuser() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def asked() -> str:
    return chat(TESTER, Send(message=f"Where? {SECRET}", agent="shop")).run_id


def answered() -> Run:
    run_id = asked()
    drive_run(run_id)
    return Run.objects.get(pk=run_id)


def made(number: int = 1, **fields: Any) -> Run:
    now = timezone.now()
    given: dict[str, Any] = {
        "id": f"run-{number}",
        "thread_id": "t",
        "actor_ref": "alice",
        "actor": {},
        "trigger": "send",
        "input": {},
    }
    given |= {"stream_run_id": f"run-{number}", "status": "running", "created_at": now}
    return Run.objects.create(**{**given, **fields})


def url(act: str, *args: object, site: str = "admin") -> str:
    return reverse(f"admin:agent_run_{act}", args=args, current_app=site)


def body(client: Client, address: str, **query: str) -> str:
    response = client.get(address, query)
    assert response.status_code == 200, response
    return unescape(response.content.decode())


def story_of(html: str) -> str:
    """The story alone, as text."""
    inside = html.partition('<section class="agent-story">')[2].partition("</section>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", inside))


# ---- the list -----------------------------------------------------------------------------------------------------


def test_the_list_shows_who_has_a_run_and_how_it_goes(superuser: Client) -> None:
    now = timezone.now()
    made(
        1,
        lease_owner="web1:4711:ab12",
        lease_expires_at=now + timedelta(seconds=41),
        started_at=now,
        attempt=3,
        recoveries=2,
        retries=1,
    )
    made(2, lease_owner="web2:9:cd", lease_expires_at=now - timedelta(minutes=2, seconds=1), attempt=1)
    made(3, status="failed", duration_ms=12_340, error_code="run_failed", settled_at=now)
    html = re.sub(r"<[^>]+>", " ", body(superuser, url("changelist")))
    for words in (
        r"web1:4711, (40|41)\.\d s left",
        r"attempt 3, 2 recoveries, 1 retry",
        r"web2:9, ran out 2 min \d s ago",
        r"12\.3 s ",
        r"run_failed",
        r"so far",
    ):
        assert re.search(words, html), words
    assert "ab12" not in html


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ("open", {"run-1", "run-2", "run-3", "run-4"}),
        ("queued", {"run-3"}),
        ("running", {"run-1", "run-2"}),
        ("silent", {"run-2"}),
        ("waiting", {"run-4"}),
        ("failed", {"run-5"}),
        ("cancelled", set()),
        ("nonsense", {f"run-{number}" for number in range(1, 7)}),
    ],
)
def test_the_filter_finds_what_an_operator_looks_for(superuser: Client, state: str, found: set[str]) -> None:
    now = timezone.now()
    made(1, lease_expires_at=now + timedelta(seconds=50))
    made(2, lease_expires_at=now - timedelta(seconds=1))
    made(3, status="queued")
    made(4, status="waiting")
    made(5, status="failed", settled_at=now)
    made(6, status="failed", settled_at=now - timedelta(days=8))
    html = body(superuser, url("changelist"), state=state)
    assert set(re.findall(r"/run/(run-\d)/change/", html)) == found


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("state", ["open", "running", "silent", "failed"])
def test_the_filter_uses_an_index(superuser: Client, state: str) -> None:
    made()
    rows = superuser.get(url("changelist"), {"state": state}).context["cl"].queryset
    assert "INDEX" in rows.explain()


# ---- the story ----------------------------------------------------------------------------------------------------


def test_a_run_is_told_in_order_with_what_it_used(runner: HeldRunner, staff: SignIn) -> None:
    get_store().supersede_price(
        NewPrice(model_id="model-a", input_per_million_nanos=10**12, output_per_million_nanos=10**12)
    )
    run = answered()
    told = story_of(body(staff("view_run", "view_spend"), url("change", run.pk)))
    places = [
        told.index(words)
        for words in (
            "Completed in",
            "2 model calls",
            "Admitted",
            "Message stored",
            "Begun",
            "Model call 1",
            "Call of look_up recorded",
            "Tool look_up",
            "Results stored",
            "Model call 2",
            "End recorded",
        )
    ]
    assert places == sorted(places)
    assert "auto_executed" in told
    assert "failed" in told
    spent = sum(row.cost_nanos or 0 for row in UsageEntry.objects.filter(run_id=run.pk))
    assert spent > 0
    assert told.count(f"${spent / 10**9:f}".rstrip("0")) == 1


def test_names_and_times_are_for_all_viewers_and_words_for_readers(runner: HeldRunner, staff: SignIn) -> None:
    run = answered()
    plain = body(staff("view_run"), url("change", run.pk))
    assert "Tool look_up" in plain
    assert SECRET not in plain
    assert "$" not in story_of(plain)
    assert "unpriced" not in story_of(plain)
    told = story_of(body(staff("view_run", "view_conversations"), url("change", run.pk)))
    assert told.count(SECRET) >= 4
    assert "$" not in told


def test_unpriced_calls_are_said_and_not_counted_as_free(runner: HeldRunner, staff: SignIn) -> None:
    told = story_of(body(staff("view_run", "view_spend"), url("change", answered().pk)))
    assert "2 calls unpriced" in told
    assert "$" not in told


def test_a_run_in_hand_says_where_it_stands(superuser: Client) -> None:
    now = timezone.now()
    run = made(
        lease_owner="web1:4711:ab",
        lease_expires_at=now + timedelta(seconds=30),
        started_at=now - timedelta(seconds=5),
        effect_name="llm:0",
        effect_position=4,
        attempt=2,
    )
    UsageEntry.objects.create(
        thread_id="t",
        run_id=run.pk,
        actor_ref="alice",
        model_id="m",
        purpose="chat",
        step_key="llm:0#1.1",
        input_tokens=3,
        output_tokens=2,
        tokens_source="estimated",
        created_at=now,
    )
    told = story_of(body(superuser, url("change", run.pk)))
    for words in ("Running for 5", "web1:4711", "attempt 2", "Begun, and not recorded yet", "llm:0", "broke off"):
        assert words in told
    Run.objects.update(lease_expires_at=now - timedelta(seconds=9))
    assert "Its worker is silent" in story_of(body(superuser, url("change", run.pk)))
    Run.objects.update(status="queued", lease_expires_at=None, lease_owner=None)
    assert "Waits for a worker" in story_of(body(superuser, url("change", run.pk)))
    Run.objects.update(status="waiting")
    assert "Waits for a person" in story_of(body(superuser, url("change", run.pk)))


def test_a_failure_is_told_by_its_code_and_its_text_to_readers(superuser: Client, staff: SignIn) -> None:
    now = timezone.now()
    run = made(status="failed", error_code="run_failed", error_message=SECRET, settled_at=now, started_at=now)
    told = story_of(body(superuser, url("change", run.pk)))
    assert "Failed after 0 ms: run_failed." in told
    assert SECRET in told
    assert SECRET not in body(staff("view_run"), url("change", run.pk))


def test_a_page_takes_the_same_few_statements_whatever_it_tells(runner: HeldRunner, superuser: Client) -> None:
    few, many = made(), answered()
    RunStep.objects.bulk_create(
        RunStep(run=many, position=n, name=f"llm:{n}", payload="{}", created_at=many.created_at) for n in range(50, 700)
    )
    body(superuser, url("change", few.pk))  # the first page of a process learns the content type
    counted, html = [], ""
    for run in (few, many):
        with CaptureQueriesContext(connection) as captured:
            html = body(superuser, url("change", run.pk))
        counted.append(len([query for query in captured if "SAVEPOINT" not in query["sql"]]))
    assert counted[0] == counted[1] <= 8
    assert "There is more than one page tells" in html


def test_a_long_payload_is_read_and_shown_only_in_part(superuser: Client) -> None:
    run = made()
    payload = '"' + "x" * 1_000_000 + '"'
    RunStep.objects.create(run=run, position=0, name="load:thread", payload=payload, created_at=run.created_at)
    html = body(superuser, url("change", run.pk))
    assert len(html) < 100_000
    assert "x …" in html


def test_another_site_tells_the_same_and_leads_to_its_own_pages(superuser: Client) -> None:
    run = made()
    html = body(superuser, url("change", run.pk, site="ops"))
    assert url("cancel", run.pk, site="ops") in html
    assert 'href="/admin/' not in html
    assert 'href="/admin/agent' not in body(superuser, url("cancel", run.pk, site="ops"))


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (3_280, "3.2 s"),
        (130_000, "2 min 10 s"),
        (3_780_000, "1 h 3 min"),
        (187_200_000, "2 d 4 h"),
    ],
)
def test_durations_are_said_as_people_say_them(ms: int, words: str) -> None:
    assert took(ms) == words


# ---- stopping it --------------------------------------------------------------------------------------------------


def test_a_run_that_nobody_has_is_cancelled_at_once(runner: HeldRunner, staff: SignIn) -> None:
    run_id, operator = asked(), staff("view_run", "cancel_run")
    assert url("cancel", run_id) in body(operator, url("change", run_id))
    assert "it ends at once" in body(operator, url("cancel", run_id))
    assert Run.objects.get(pk=run_id).status == "queued"
    done = operator.post(url("cancel", run_id), follow=True)
    assert done.redirect_chain == [(url("change", run_id), 302)]
    assert "The run was cancelled." in done.content.decode()
    run = Run.objects.get(pk=run_id)
    assert (run.status, Thread.objects.get(pk=run.thread_id).active_run_id) == ("cancelled", None)
    assert StreamFrame.objects.filter(run_id=run_id, frame=None).exists()
    assert LogEntry.objects.get(object_id=run_id).get_change_message() == "The run was cancelled."
    assert url("cancel", run_id) not in done.content.decode()


def test_a_waiting_run_is_cancelled_with_its_open_calls(runner: HeldRunner, staff: SignIn) -> None:
    run_id = asked()
    Run.objects.filter(pk=run_id).update(status="waiting")
    staff("view_run", "cancel_run").post(url("cancel", run_id))
    assert Run.objects.get(pk=run_id).status == "cancelled"


def test_the_worker_of_a_running_one_is_told(runner: HeldRunner, staff: SignIn) -> None:
    run_id, operator = asked(), staff("view_run", "cancel_run")
    lease = get_store().claim_run(run_id, "web1:1:aa", 60)
    assert lease is not None
    assert "A worker has it in hand" in body(operator, url("cancel", run_id))
    done = operator.post(url("cancel", run_id), follow=True).content.decode()
    assert "asked to stop" in done
    assert "Asked to stop" in story_of(unescape(done))
    assert runner.signalled == [run_id]
    assert Run.objects.get(pk=run_id).cancel_requested_at is not None


def test_one_that_is_over_stays_as_it_is_and_the_operator_is_told(runner: HeldRunner, staff: SignIn) -> None:
    run, operator = answered(), staff("view_run", "cancel_run")
    assert url("cancel", run.pk) not in body(operator, url("change", run.pk))
    for answer in (operator.get(url("cancel", run.pk), follow=True), operator.post(url("cancel", run.pk), follow=True)):
        assert "over before it could be stopped: completed" in answer.content.decode()
    assert Run.objects.get(pk=run.pk).status == "completed"
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("permissions", [(), ("view_run",), ("cancel_run",), ("view_run", "change_run", "delete_run")])
def test_who_may_not_stop_runs_finds_no_button_and_no_way(
    runner: HeldRunner, staff: SignIn, permissions: tuple[str, ...]
) -> None:
    run_id, other = asked(), staff(*permissions)
    if "view_run" in permissions:
        assert url("cancel", run_id) not in body(other, url("change", run_id))
    assert [other.get(url("cancel", run_id)).status_code, other.post(url("cancel", run_id)).status_code] == [403, 403]
    assert Run.objects.get(pk=run_id).status == "queued"


def test_stopping_needs_a_token_and_a_post(runner: HeldRunner, superuser: Client) -> None:
    run_id = asked()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="root"))
    assert strict.post(url("cancel", run_id)).status_code == 403
    assert superuser.delete(url("cancel", run_id)).status_code == 405
    assert Client().post(url("cancel", run_id)).status_code == 302  # to the login
    assert superuser.post(url("cancel", "unknown")).status_code == 302
    assert Run.objects.get(pk=run_id).status == "queued"


def test_stopping_in_a_request_that_is_one_transaction(runner: HeldRunner, superuser: Client) -> None:
    run_id = asked()
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        superuser.post(url("cancel", run_id))
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False
    assert Run.objects.get(pk=run_id).status == "cancelled"
    assert not ToolCall.objects.filter(status="running").exists()
