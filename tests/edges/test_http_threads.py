"""Conversations over HTTP: their exact shapes, what may be changed, and what the matrix of people may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage, NewRun, RecordUsage, RunEnd
from agent.domain.ids import new_id
from agent.models import Message, Thread, UsageEntry
from agent.store import get_store
from tests.edges.conftest import MakeDesk, Person

pytestmark = pytest.mark.django_db

SUMMARY = {
    *("id", "title", "transient", "defaultAgent", "model", "persona"),
    *("lastMessagePreview", "createdAt", "updatedAt"),
}


def thread_of(actor: Actor, *said: tuple[str, str], **fields: Any) -> str:
    store = get_store()
    thread_id = store.create_thread(actor=actor, **fields).id
    for role, content in said:
        store.append_message(AppendMessage(thread_id=thread_id, role=role, content=content, run_id="r-1"))
    return thread_id


def message_ids(thread_id: str) -> list[str]:
    return list(Message.objects.filter(thread_id=thread_id).order_by("seq").values_list("pk", flat=True))


def error(response: Any) -> tuple[int, str | None]:
    return response.status_code, response.json().get("code")


def test_an_answer_says_how_its_run_stands_as_long_as_the_run_is_kept(owner: Person) -> None:
    store, thread_id = get_store(), thread_of(owner.actor, ("user", "q"), ("assistant", "a"))
    messages = f"/agent/threads/{thread_id}"
    assert ["runStatus" in message for message in owner.get(messages).json()["messages"]] == [False, False]
    store.create_run(NewRun(id="r-1", thread_id=thread_id, actor=owner.actor, trigger="send", input={}))
    store.record_run_end("r-1", RunEnd(status="cancelled"))
    told = [message.get("runStatus") for message in owner.get(messages).json()["messages"]]
    assert told == [None, "cancelled"]


# ---- shapes ---------------------------------------------------------------------------------------------------------


def test_a_summary_has_null_pins_and_an_active_run_only_when_there_is_one(owner: Person) -> None:
    idle = thread_of(owner.actor, ("user", "x" * 200), title="Lamps")
    busy = thread_of(owner.actor, title="Busy", active_run_id="run-1")
    listed = {thread["id"]: thread for thread in owner.get("/agent/threads").json()}
    assert set(listed[idle]) == SUMMARY
    assert set(listed[busy]) == SUMMARY | {"activeRunId"}
    assert listed[idle]["lastMessagePreview"] == "x" * 120
    assert [listed[idle][pin] for pin in ("defaultAgent", "model", "persona")] == [None] * 3
    assert listed[idle]["createdAt"].endswith("Z")
    assert len(listed[idle]["createdAt"]) == len("2026-01-01T00:00:00.000Z")


def test_the_list_leaves_out_scratch_threads_and_is_cut_to_its_limit(owner: Person) -> None:
    shown = [thread_of(owner.actor, title=str(number)) for number in range(3)]
    scratch = thread_of(owner.actor, transient=True)
    ids = [thread["id"] for thread in owner.get("/agent/threads").json()]
    assert set(ids) == set(shown)
    assert len(owner.get("/agent/threads?limit=2").json()) == 2
    assert owner.post(f"/agent/threads/{scratch}/promote").json() == {"ok": True}
    assert owner.post(f"/agent/threads/{scratch}/promote").json() == {"ok": True}
    assert len(owner.get("/agent/threads?limit=10000").json()) == 4


def test_a_message_has_every_field_but_what_only_the_provider_understands(owner: Person) -> None:
    thread_id = thread_of(owner.actor)
    stored = get_store().append_message(
        AppendMessage(
            thread_id=thread_id,
            role="assistant",
            content="a\x00b",
            tool_calls=[{"id": "c", "providerCallId": "p", "name": "t", "input": {"odd": "\ud800"}, "kind": "read"}],
            tool_results=[{"id": "c", "name": "t", "output": None}],
            follow_ups=["More?"],
            usage={"inputTokens": 1, "costUsd": None},
            agent_name="desk",
            persona="kind",
            run_id="r-1",
            reasoning="hm",
            reasoning_ms=5,
            ui=[{"id": "u", "component": "Card", "props": {}}],
            provider_state="signed",
        )
    )
    bare = get_store().append_message(AppendMessage(thread_id=thread_id, role="user", content="Hi"))
    response = owner.get(f"/agent/threads/{thread_id}")
    assert response.content.isascii()
    detail = response.json()
    assert set(detail) == SUMMARY | {"messages", "queue"}
    assert detail["queue"] == {"items": [], "paused": None}
    full, short = detail["messages"]
    assert full["id"] == stored.id
    assert full["content"] == "a\ufffdb"
    assert full["toolCalls"][0]["input"] == {"odd": "\ud800"}
    assert full["usage"]["costUsd"] is None
    assert set(full) == {
        *("id", "role", "content", "toolCalls", "toolResults", "followUps", "usage", "agentName", "persona"),
        *("runId", "reasoning", "reasoningMs", "ui", "createdAt"),
    }
    assert set(short) == {"id", "role", "content", "createdAt"}
    assert short["id"] == bare.id
    assert b"signed" not in response.content


# ---- patch ----------------------------------------------------------------------------------------------------------


def test_a_patch_sets_clears_and_leaves_alone(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(MODELS=[{"id": "small", "label": "Small"}])
    thread_id = thread_of(owner.actor, title="Old")
    path = f"/agent/threads/{thread_id}"
    assert owner.patch(path, {"title": "New \U0001f4a1", "defaultAgent": "desk", "model": "small"}).json() == {
        "ok": True
    }
    assert owner.patch(path, {}).json() == {"ok": True}
    detail = owner.get(path).json()
    assert (detail["title"], detail["defaultAgent"], detail["model"]) == ("New \U0001f4a1", "desk", "small")
    owner.patch(path, {"title": None, "defaultAgent": None})
    detail = owner.get(path).json()
    assert (detail["title"], detail["defaultAgent"], detail["model"]) == ("New chat", None, "small")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"title": 5}, (400, "invalid_body")),
        ({"title": "x" * 256}, (400, "invalid_body")),
        ({"defaultAgent": ""}, (400, "invalid_body")),
        ({"defaultAgent": "a\x00"}, (400, "invalid_body")),
        ({"model": "\ud800"}, (400, "invalid_body")),
        ({"persona": []}, (400, "invalid_body")),
        ({"defaultAgent": "nobody"}, (400, "agent_not_found")),
        ({"defaultAgent": "back-office"}, (403, "forbidden")),
        ({"persona": "pirate"}, (400, "persona_not_found")),
        ({"model": "gpt-99"}, (400, "model_not_offered")),
        ([], (400, "invalid_body")),
    ],
)
def test_a_patch_that_is_refused_changes_nothing(
    make_desk: MakeDesk,
    owner: Person,
    body: Any,
    expected: tuple[int, str],
) -> None:
    make_desk()
    thread_id = thread_of(owner.actor, title="Old")
    before = Thread.objects.values().get(pk=thread_id)
    assert error(owner.patch(f"/agent/threads/{thread_id}", {"title": "Both", **body} if body else body)) == expected
    assert Thread.objects.values().get(pk=thread_id) == before


def test_a_title_is_cleaned_like_any_text(make_desk: MakeDesk, owner: Person) -> None:
    make_desk()
    thread_id = thread_of(owner.actor)
    owner.patch(f"/agent/threads/{thread_id}", {"title": "a\x00\ud800"})
    assert owner.get(f"/agent/threads/{thread_id}").json()["title"] == "a\ufffd\ufffd"


# ---- fork, cut ------------------------------------------------------------------------------------------------------

SAID = (("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four"))


def test_a_fork_copies_up_to_the_message_and_all_for_an_unknown_one(owner: Person) -> None:
    thread_id = thread_of(owner.actor, *SAID, title="Old")
    response = owner.post(f"/agent/threads/{thread_id}/fork-from/{message_ids(thread_id)[1]}")
    assert response.status_code == 201
    fork = response.json()
    assert set(fork) == SUMMARY
    assert fork["title"] == "Old"
    messages = owner.get(f"/agent/threads/{fork['id']}").json()["messages"]
    assert [message["content"] for message in messages] == ["one", "two"]
    for unknown in ("unknown", "%00", "x" * 300, "%F0%9F%98%80"):
        whole = owner.post(f"/agent/threads/{thread_id}/fork-from/{unknown}")
        assert whole.status_code == 201
        assert len(owner.get(f"/agent/threads/{whole.json()['id']}").json()["messages"]) == 4


def test_spend_is_not_copied(owner: Person) -> None:
    thread_id = thread_of(owner.actor, *SAID)
    get_store().record_usage(
        RecordUsage(thread_id=thread_id, actor_ref=owner.actor.ref, model_id="m", purpose="chat", step_key="llm:0")
    )
    owner.post(f"/agent/threads/{thread_id}/fork-from/all")
    assert UsageEntry.objects.count() == 1


def test_a_cut_removes_the_message_and_all_after_it(owner: Person) -> None:
    thread_id = thread_of(owner.actor, *SAID)
    third = message_ids(thread_id)[2]
    assert owner.delete(f"/agent/threads/{thread_id}/from/{third}").json() == {"ok": True}
    assert len(message_ids(thread_id)) == 2
    assert error(owner.delete(f"/agent/threads/{thread_id}/from/{third}")) == (404, "not_found")


def test_a_cut_of_another_threads_message_is_404_and_changes_neither(owner: Person) -> None:
    mine, other = thread_of(owner.actor, *SAID), thread_of(owner.actor, *SAID)
    for message_id in (message_ids(other)[0], "unknown", "%00"):
        assert error(owner.delete(f"/agent/threads/{mine}/from/{message_id}")) == (404, "not_found")
    assert len(message_ids(mine)) == len(message_ids(other)) == 4


def test_a_busy_thread_is_not_cut_but_may_be_copied(owner: Person) -> None:
    thread_id = thread_of(owner.actor, *SAID)
    run_id = new_id()
    get_store().create_run(NewRun(id=run_id, thread_id=thread_id, actor=owner.actor, input={}))
    get_store().claim_active_run(thread_id, run_id)
    assert error(owner.delete(f"/agent/threads/{thread_id}/from/{message_ids(thread_id)[0]}")) == (409, "run_active")
    assert len(message_ids(thread_id)) == 4
    fork = owner.post(f"/agent/threads/{thread_id}/fork-from/all")
    assert fork.status_code == 201
    assert "activeRunId" not in fork.json()


# ---- feedback -------------------------------------------------------------------------------------------------------


def test_feedback_is_set_changed_and_taken_back(owner: Person) -> None:
    thread_id = thread_of(owner.actor, *SAID)
    path = f"/agent/messages/{message_ids(thread_id)[1]}/feedback"
    given = owner.post(path, {"value": "up", "comment": "Good \x00"}).json()["feedback"]
    assert (given["value"], given["comment"]) == ("up", "Good \ufffd")
    assert set(given) == {"value", "comment", "updatedAt"}
    assert owner.get(f"/agent/threads/{thread_id}").json()["messages"][1]["feedback"] == given
    changed = owner.post(path, {"value": "down"}).json()["feedback"]
    assert set(changed) == {"value", "updatedAt"}
    assert owner.post(path, {"value": None, "comment": "x"}).json() == {"feedback": None}
    assert "feedback" not in owner.get(f"/agent/threads/{thread_id}").json()["messages"][1]


def test_only_an_answer_can_be_given_feedback(owner: Person) -> None:
    thread_id = thread_of(owner.actor, *SAID)
    answer = owner.post(f"/agent/messages/{message_ids(thread_id)[0]}/feedback", {"value": "up"})
    assert error(answer) == (400, "invalid_body")


NO_FEEDBACK: tuple[object, ...] = (
    *({}, {"value": "meh"}, {"value": True}, {"value": "UP"}, {"value": ""}, {"value": ["up"]}, {"value": {"up": 1}}),
    *({"value": "up", "comment": 5}, {"value": "up", "comment": []}, {"value": "up", "comment": "x" * 2001}),
)


@pytest.mark.parametrize("body", NO_FEEDBACK)
def test_feedback_of_a_wrong_kind_is_400_and_not_stored(owner: Person, body: object) -> None:
    thread_id = thread_of(owner.actor, *SAID)
    answer = owner.post(f"/agent/messages/{message_ids(thread_id)[1]}/feedback", body)
    assert error(answer) == (400, "invalid_body")
    assert not Message.objects.filter(feedback__isnull=False).exists()


# ---- who may what ---------------------------------------------------------------------------------------------------

Ask = Callable[[Person, str, str, str], Any]

ROUTES: dict[str, Ask] = {
    "read": lambda who, thread, message, run: who.get(f"/agent/threads/{thread}"),
    "patch": lambda who, thread, message, run: who.patch(f"/agent/threads/{thread}", {"title": "Mine"}),
    "delete": lambda who, thread, message, run: who.delete(f"/agent/threads/{thread}"),
    "promote": lambda who, thread, message, run: who.post(f"/agent/threads/{thread}/promote"),
    "fork": lambda who, thread, message, run: who.post(f"/agent/threads/{thread}/fork-from/{message}"),
    "cut": lambda who, thread, message, run: who.delete(f"/agent/threads/{thread}/from/{message}"),
    "feedback": lambda who, thread, message, run: who.post(f"/agent/messages/{message}/feedback", {"value": "up"}),
    "send": lambda who, thread, message, run: who.post("/agent/chat", {"message": "Hi", "threadId": thread}),
    "stream": lambda who, thread, message, run: who.get(f"/agent/chat/{run}/stream"),
    "cancel": lambda who, thread, message, run: who.post(f"/agent/chat/{run}/cancel"),
}
OPEN_ROUTES = ("agents", "tools", "models", "quota", "config", "threads")

every_route = pytest.mark.parametrize("name", ROUTES)


def everything() -> list[object]:
    return [list(model._default_manager.order_by("pk").values()) for model in (Thread, Message)]


@pytest.fixture
def conversation(make_desk: MakeDesk, owner: Person) -> tuple[str, str, str]:
    """The owner's thread, an answer in it, and the run that goes on in it."""
    make_desk()
    thread_id, run_id = thread_of(owner.actor, *SAID, title="Secret"), new_id()
    get_store().create_run(NewRun(id=run_id, thread_id=thread_id, actor=owner.actor, input={}))
    return thread_id, message_ids(thread_id)[1], run_id


@every_route
@pytest.mark.parametrize("who", ["stranger", "operator"])
def test_anothers_is_403_and_nothing_is_told_or_done(
    request: pytest.FixtureRequest, conversation: tuple[str, str, str], who: str, name: str
) -> None:
    before = everything()
    response = ROUTES[name](request.getfixturevalue(who), *conversation)
    assert error(response) == (403, "forbidden")
    assert b"Secret" not in response.content
    assert everything() == before


@every_route
@pytest.mark.parametrize("missing", ["unknown", "%00", "%ED%A0%80", "x" * 5000, "%F0%9F%98%80", "..", "%2E%2E"])
def test_what_nobody_has_is_404(conversation: tuple[str, str, str], owner: Person, name: str, missing: str) -> None:
    before = everything()
    thread_id = missing if name != "send" else "unknown"
    response = ROUTES[name](owner, thread_id, missing, missing)
    assert response.status_code == 404
    assert everything() == before


@every_route
@pytest.mark.parametrize("there", [True, False])
def test_nobody_is_401_whether_it_is_there_or_not(
    conversation: tuple[str, str, str], owner: Person, name: str, *, there: bool
) -> None:
    nobody = Person(owner.user, Client())
    response = ROUTES[name](nobody, *(conversation if there else ("x", "y", "z")))
    assert error(response) == (401, "not_authenticated")


@pytest.mark.parametrize("name", [*OPEN_ROUTES, "schema"])
def test_catalogues_want_somebody(client: Client, name: str) -> None:
    assert client.get(f"/agent/{name}").status_code == 401


GATEWAY = {"ACTOR_RESOLVER": "agent.actors.HeaderActorResolver", "TRUSTED_GATEWAY": True}


@pytest.mark.parametrize(
    ("tenant", "status"),
    [({"x-tenant-ref": "acme"}, 200), ({"x-tenant-ref": "other"}, 403), ({"x-tenant-ref": ""}, 403), ({}, 403)],
)
def test_the_same_ref_in_another_tenant_is_another(
    make_desk: MakeDesk, client: Client, tenant: dict[str, str], status: int
) -> None:
    make_desk(**GATEWAY)
    thread_id = thread_of(Actor("u-1", (), "acme"))
    response = client.get(f"/agent/threads/{thread_id}", headers={"x-actor-id": "u-1", **tenant})
    assert response.status_code == status


# ---- catalogues -----------------------------------------------------------------------------------------------------


def test_catalogues_show_what_the_actor_may_use(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(
        MODELS=[{"id": "small", "label": "Small", "default": True}, {"id": "big", "label": "Big", "roles": ["vip"]}]
    )
    assert owner.get("/agent/agents").json() == [
        {"name": "desk", "label": "Desk", "description": "The desk", "personas": [], "allowAsk": False}
    ]
    tools = owner.get("/agent/tools?agent=desk").json()
    assert [(tool["name"], tool["kind"]) for tool in tools] == [("look_up_order", "read")]
    assert tools[0]["schema"]["properties"]["number"]["type"] == "integer"
    assert owner.get("/agent/tools?agent=*").json() == tools
    assert owner.get("/agent/models?agent=desk").json() == [
        {"id": "small", "label": "Small", "available": True, "locked": False, "default": True}
    ]


@pytest.mark.parametrize("route", ["tools", "models"])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nobody", (400, "agent_not_found")),
        ("back-office", (403, "forbidden")),
        ("", (400, "invalid_body")),
        ("x" * 256, (400, "invalid_body")),
        ("%00", (400, "invalid_body")),
    ],
)
def test_a_catalogue_of_a_wrong_agent_is_refused(
    make_desk: MakeDesk, owner: Person, route: str, name: str, expected: tuple[int, str]
) -> None:
    make_desk()
    assert error(owner.get(f"/agent/{route}?agent={name}")) == expected


def test_the_configuration_says_what_there_is_and_hands_out_the_csrf_cookie(make_desk: MakeDesk, owner: Person) -> None:
    make_desk()
    response = owner.get("/agent/config")
    assert response.json() == {
        "attachments": None,
        "models": {"enabled": False},
        "quota": {"enforced": False},
        "identity": {"anonymous": False},
        "queue": {"enabled": True},
        "approvals": {"mode": "blocking"},
    }
    assert "csrftoken" in response.cookies
    assert owner.get("/agent/quota").json() == {"windows": []}


def test_the_schema_is_served_only_where_it_is_wanted(make_desk: MakeDesk, owner: Person) -> None:
    make_desk()
    assert error(owner.get("/agent/schema")) == (404, "not_found")
    make_desk(SERVE_SCHEMA=True)
    document = owner.get("/agent/schema").json()
    assert document["openapi"] == "3.1.0"
    assert "/agent/chat" in document["paths"]
