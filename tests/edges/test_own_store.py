"""A site on a store of its own, with nothing but what every store keeps: each absent capability, as people meet it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.core.checks import run_checks
from django.test import override_settings

from agent.flows.admission import Admitted, chat, submit
from agent.flows.recovery import take_over
from agent.flows.starts import Send
from agent.models import Message, Run, RunStep, Thread, UsageEntry
from agent.providers.scripted import Script, ScriptedProvider, ScriptedReply, call
from agent.registry import agent, isolated_registry, tool
from agent.routing import websocket_application
from agent.store import get_store
from agent.testing import drive_run, held_runner
from tests.edges.conftest import MakeDesk, Person, body_of, events_of
from tests.edges.sockets import session_of
from tests.notebook import NotebookStore

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]

LOOK_UP = [ScriptedReply(calls=[call("look_up_order", number=1042)]), "It was sent."]


def on_notebook(**settings: object) -> dict[str, object]:
    """The settings of a site on such a store."""
    return {"STORE": NotebookStore(), "SINK": "memory", **settings}


def ask(person: Person, **headers: str) -> tuple[str, str, str]:
    """Ask over HTTP: the conversation, the run, and what was answered."""
    response = person.post("/agent/chat", {"message": "Where is order 1042?"}, **headers)
    assert response.status_code == 200
    events = events_of(body_of(response))
    text = "".join(frame["text"] for kind, _, frame in events if kind == "frame" and frame["kind"] == "text")
    return response["X-Agent-Thread-Id"], response["X-Agent-Run-Id"], text


def test_a_turn_is_said_and_kept_and_touches_no_table_of_ours(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(LOOK_UP, **on_notebook())
    thread_id, run_id, text = ask(owner)
    detail = owner.get(f"/agent/threads/{thread_id}").json()
    assert detail["messages"][-1]["content"] == text == "It was sent."
    assert detail["messages"][1]["toolResults"][0]["output"]["status"] == "sent"
    assert [row.step_key for row in get_store().usage_of_run(run_id)] == ["llm:0", "llm:1"]
    replay = owner.get(f"/agent/chat/{run_id}/stream")
    assert events_of(body_of(replay))[-1][0] == "done"
    assert not any(model._default_manager.exists() for model in (Thread, Message, Run, RunStep, UsageEntry))


# Each absence of the table of 02 §3 that a caller can meet: method, path, body, status.
ABSENT: list[tuple[str, str, object, int]] = [
    ("PATCH", "threads/{thread}", {"model": "m"}, 501),  # thread_patch
    ("PATCH", "threads/{thread}", {"persona": None}, 501),
    ("PATCH", "threads/{thread}", {"title": "A title is no pin"}, 200),
    ("POST", "messages/{message}/feedback", {"value": "up"}, 501),  # feedback
    ("GET", "threads/{thread}/queue", None, 501),  # queue
    ("DELETE", "threads/{thread}/queue", None, 501),
    ("POST", "threads/{thread}/queue/resume", None, 501),
    ("PATCH", "queue/{message}", {"content": "Later"}, 501),
    ("DELETE", "queue/{message}", None, 501),
    ("POST", "queue/{message}/interrupt", None, 501),
    ("POST", "threads/{thread}/action-proposals/p/approve", {}, 501),  # proposals
    ("POST", "threads/{thread}/action-proposals/p/reject", {}, 501),
]


def test_what_is_absent_answers_501_and_lists_are_empty(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(LOOK_UP, **on_notebook())
    thread_id, _, _ = ask(owner)
    message_id = owner.get(f"/agent/threads/{thread_id}").json()["messages"][-1]["id"]
    for method, path, body, status in ABSENT:
        where = "/agent/" + path.format(thread=thread_id, message=message_id)
        text = "" if body is None else json.dumps(body)
        response = owner.client.generic(method, where, text, content_type="application/json")
        assert response.status_code == status, (method, path, response.content)
        assert status != 501 or response.json()["code"] == "not_supported"
    assert owner.get(f"/agent/threads/{thread_id}/action-proposals").json() == []
    assert owner.get("/agent/config").json()["queue"] == {"enabled": False}
    assert owner.get(f"/agent/threads/{thread_id}").json()["queue"] == {"items": [], "paused": None}


def test_an_idempotency_key_is_ignored(make_desk: MakeDesk, owner: Person) -> None:
    make_desk([*LOOK_UP, *LOOK_UP], **on_notebook())
    first, second = (ask(owner, **{"Idempotency-Key": "once"})[0] for _ in range(2))
    assert first != second


def test_every_send_starts_at_once_and_a_persona_is_of_that_turn_alone(make_desk: MakeDesk, owner: Person) -> None:
    with held_runner():
        make_desk(["One.", "Two."], **on_notebook())
        first = chat(owner.actor, Send(message="One?"))
        second = submit(owner.actor, Send(message="Two?", thread_id=first.thread_id, mode="queue"))
        assert isinstance(second, Admitted)
        assert [drive_run(run.run_id).status for run in (first, second)] == ["completed", "completed"]
        assert get_store().active_run_for_thread(first.thread_id) is None


@pytest.fixture
def parked(owner: Person) -> Iterator[tuple[NotebookStore, Admitted]]:
    """A run on such a store that waits for its own actor's approval."""
    store = NotebookStore()
    script: Script = [ScriptedReply(calls=[call("close", account="a")]), "It is closed."]
    settings = {"PROVIDERS": {"s": ScriptedProvider(script)}, "STORE": store, "SINK": "memory"}
    with isolated_registry(), override_settings(AGENT=settings), held_runner():

        @tool(kind="action")
        def close(account: str) -> str:
            """Close an account."""
            return account

        agent(name="desk", prompt="p", tools=[close])(type("Desk", (), {}))
        admitted = chat(owner.actor, Send(message="Close it."))
        assert drive_run(admitted.run_id).status == "waiting"
        yield store, admitted


def test_an_approval_is_waited_for_in_this_process(parked: tuple[NotebookStore, Admitted], owner: Person) -> None:
    store, admitted = parked
    [pending] = store.pending_approvals(2)
    assert owner.post("/agent/tool-call/approve", {"toolCallId": pending.tool_call.id}).json() == {"ok": True}
    assert drive_run(admitted.run_id).status == "completed"
    assert store.said_in(admitted.thread_id)[-1].content == "It is closed."


def test_runs_and_journals_die_with_the_process(
    parked: tuple[NotebookStore, Admitted], owner: Person, make_desk: MakeDesk
) -> None:
    store, admitted = parked
    [pending] = store.pending_approvals(2)
    make_desk(["Again."], STORE=store, SINK="memory")  # as a new process finds the store
    assert take_over() == 0
    assert owner.get(f"/agent/chat/{admitted.run_id}/stream").status_code == 404
    refused = owner.post("/agent/tool-call/approve", {"toolCallId": pending.tool_call.id})
    assert (refused.status_code, refused.json()["code"]) == (409, "run_not_active")
    again = chat(owner.actor, Send(message="And now?", thread_id=admitted.thread_id))
    assert drive_run(again.run_id).status == "completed"


def test_a_socket_says_the_same(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(LOOK_UP, **on_notebook())
    headers = [(b"origin", b"http://testserver"), (b"cookie", f"sessionid={session_of(owner.user)}".encode())]

    async def heard() -> list[dict[str, Any]]:
        line = WebsocketCommunicator(websocket_application, "/ws/agent/", headers=headers)
        assert (await line.connect(timeout=30))[0]
        await line.send_json_to({"type": "send", "ref": "1", "message": "Where?", "idempotencyKey": "k"})
        said: list[dict[str, Any]] = []
        while not said or said[-1]["type"] not in {"done", "error"}:
            said.append(json.loads((await line.receive_output(timeout=30))["text"]))
        proposal = {"threadId": said[0]["threadId"], "proposalId": "p"}
        await line.send_json_to({"type": "approve", "ref": "2", **proposal})
        said.append(json.loads((await line.receive_output(timeout=30))["text"]))
        await line.disconnect()
        return said

    meta, *frames, done, refused = asyncio.run(heard())
    assert (meta["type"], done["type"]) == ("meta", "done")
    assert "".join(each["frame"]["text"] for each in frames if each["frame"]["kind"] == "text") == "It was sent."
    assert (refused["type"], refused["status"], refused["code"]) == ("error", 501, "not_supported")


def test_the_console_shows_nothing_and_breaks_nowhere(make_desk: MakeDesk, owner: Person, operator: Person) -> None:
    make_desk(LOOK_UP, **on_notebook())
    ask(owner)
    for screen in ("spend", "usage", "runs", "threads", "tools", "live"):
        response = operator.get(f"/admin/governance/{screen}/")
        assert response.status_code == 200, screen
    assert operator.get("/governance/api/runs").json() == []


def test_what_such_a_store_cannot_carry_is_said_before_the_start() -> None:
    settings = {"STORE": NotebookStore, "SINK": "database", "RUNNER": "celery"}
    with isolated_registry(), override_settings(AGENT={**settings, "ACTION_APPROVAL_MODE": "independent"}):
        found = {each.id for each in run_checks()}

        @tool(kind="action")
        def act() -> str:
            """Act."""
            return "done"

        agent(name="desk", prompt="p", tools=[act])(type("Desk", (), {}))
        declared = {each.id for each in run_checks()}
    assert {"agent.E022", "agent.E024", "agent.W011", "agent.W012"} <= found
    assert "agent.E023" in declared
    assert not {"agent.E020", "agent.E021"} & declared
