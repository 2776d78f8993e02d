"""A message goes in, a stream comes out: on the wire, in the database, again after a reload, and only for its owner."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from agent.domain.model_calls import ModelRequest
from agent.models import Message, Run, Thread, UsageEntry
from agent.providers.scripted import ScriptedReply, call
from agent.store import get_store
from tests.edges.conftest import MakeDesk, Person, body_of, events_of

pytestmark = pytest.mark.django_db(transaction=True)

STREAM_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}
LOOK_UP = [ScriptedReply(calls=[call("look_up_order", number=1042)]), "It was sent."]


def send(person: Person, message: str = "Where is order 1042?", **fields: Any) -> Any:
    return person.post("/agent/chat", {"message": message, **fields})


def error(response: Any) -> tuple[int, str | None]:
    return response.status_code, response.json().get("code")


def rows() -> tuple[int, ...]:
    return tuple(model._default_manager.count() for model in (Thread, Message, Run, UsageEntry))


def test_the_answer_is_streamed_and_stored(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(LOOK_UP)
    response = send(owner)
    assert response.status_code == 200
    assert {name: response[name] for name in STREAM_HEADERS} == STREAM_HEADERS
    assert "Content-Length" not in response
    exposed = {name.strip() for name in response["Access-Control-Expose-Headers"].split(",")}
    assert exposed >= {"X-Agent-Run-Id", "X-Agent-Thread-Id", "X-Accel-Buffering"}
    events = events_of(body_of(response))
    run_id, thread_id = response["X-Agent-Run-Id"], response["X-Agent-Thread-Id"]
    assert events[0] == ("meta", None, {"runId": run_id, "threadId": thread_id})
    assert events[-1] == ("done", None, {})
    frames = events[1:-1]
    assert [number for _, number, _ in frames] == list(range(1, len(frames) + 1))
    text = "".join(frame["text"] for _, _, frame in frames if frame["kind"] == "text")
    detail = owner.get(f"/agent/threads/{thread_id}").json()
    assert [message["role"] for message in detail["messages"]] == ["user", "assistant", "assistant"]
    assert detail["messages"][-1]["content"] == text == "It was sent."
    assert detail["messages"][1]["toolResults"][0]["output"] == {
        "number": 1042,
        "status": "sent",
        "for": str(owner.user.pk),
    }
    assert "activeRunId" not in detail
    assert UsageEntry.objects.filter(run_id=run_id).count() == 2


def test_a_second_message_goes_on_in_the_thread(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(["One.", "Two."])
    first = send(owner)
    body_of(first)
    second = send(owner, "And now?", threadId=first["X-Agent-Thread-Id"])
    body_of(second)
    detail = owner.get(f"/agent/threads/{first['X-Agent-Thread-Id']}").json()
    assert [message["content"] for message in detail["messages"]][1::2] == ["One.", "Two."]


@pytest.mark.parametrize("accept", ["text/event-stream", "*/*", "application/json", "image/png"])
def test_a_stream_is_never_refused_for_its_accept(make_desk: MakeDesk, owner: Person, accept: str) -> None:
    make_desk(["Hi."])
    response = owner.post("/agent/chat", {"message": "Hello"}, Accept=accept)
    assert response["Content-Type"].startswith("text/event-stream")
    assert events_of(body_of(response))[-1][0] == "done"


def test_a_failed_run_ends_with_its_error_now_and_again(make_desk: MakeDesk, owner: Person) -> None:
    make_desk([RuntimeError("sk-secret is wrong")], EXPOSE_ERRORS=False)
    response = send(owner)
    body = body_of(response)
    assert events_of(body)[-1][0] == "error"
    assert events_of(body)[-1][2]["code"] == "run_failed"
    assert b"sk-secret" not in body
    again = body_of(owner.get(f"/agent/chat/{response['X-Agent-Run-Id']}/stream"))
    assert events_of(again)[-1] == events_of(body)[-1]


# ---- joining again --------------------------------------------------------------------------------------------------


def test_every_cursor_gives_the_rest_and_nothing_twice(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(LOOK_UP)
    response = send(owner)
    events = events_of(body_of(response))
    run_id = response["X-Agent-Run-Id"]
    for cursor in range(len(events) - 1):
        again = owner.get(f"/agent/chat/{run_id}/stream?after={cursor}")
        assert again["X-Agent-Thread-Id"] == response["X-Agent-Thread-Id"]
        assert events_of(body_of(again)) == [("meta", None, {"runId": run_id}), *events[1 + cursor :]]
    last = {"Last-Event-ID": "2"}
    assert events_of(body_of(owner.get(f"/agent/chat/{run_id}/stream", **last)))[1] == events[3]
    both = owner.get(f"/agent/chat/{run_id}/stream?after=0", **last)
    assert events_of(body_of(both))[1] == events[1]


def test_a_purged_stream_is_gone_but_the_thread_is_not(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(["Hi."])
    response = send(owner)
    body_of(response)
    get_store().remove_frames([response["X-Agent-Run-Id"]])
    assert error(owner.get(f"/agent/chat/{response['X-Agent-Run-Id']}/stream")) == (404, "stream_not_found")
    assert owner.get(f"/agent/threads/{response['X-Agent-Thread-Id']}").status_code == 200


@pytest.mark.parametrize("run_id", ["unknown", "x" * 300, "%00", "a%00b", "%ED%A0%80", "%F0%9F%98%80"])
def test_an_unknown_stream_is_404(owner: Person, run_id: str) -> None:
    assert error(owner.get(f"/agent/chat/{run_id}/stream")) == (404, "stream_not_found")


@pytest.mark.parametrize("query", ["after=-1", "after=x", "after=", "after=1.0"])
def test_a_bad_cursor_is_400_before_anything_is_looked_up(owner: Person, query: str) -> None:
    assert error(owner.get(f"/agent/chat/unknown/stream?{query}")) == (400, "invalid_body")


def test_a_cursor_beyond_every_number_ends_at_once(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(["Hi."])
    response = send(owner)
    body_of(response)
    again = owner.get(f"/agent/chat/{response['X-Agent-Run-Id']}/stream?after={'9' * 100}")
    assert again.status_code == 200


# ---- idempotency ----------------------------------------------------------------------------------------------------


def test_a_repeat_with_its_key_answers_the_first_stream_and_stores_nothing(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(["Hi."])
    body, key = {"message": "Hello", "transient": False}, {"Idempotency-Key": "k-1"}
    first = owner.post("/agent/chat", body, **key)
    events = events_of(body_of(first))
    before = rows()
    again = owner.post("/agent/chat", dict(reversed(body.items())), **key)
    assert events_of(body_of(again)) == events
    assert rows() == before


def test_a_repeat_whose_stream_is_gone_is_told_where_the_answer_is(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(["Hi."])
    key = {"Idempotency-Key": "k-1"}
    first = owner.post("/agent/chat", {"message": "Hello"}, **key)
    body_of(first)
    get_store().remove_frames([first["X-Agent-Run-Id"]])
    again = owner.post("/agent/chat", {"message": "Hello"}, **key)
    assert again.status_code == 200
    assert again.json() == {"threadId": first["X-Agent-Thread-Id"], "runId": first["X-Agent-Run-Id"]}


def test_a_key_with_another_body_is_422_and_anothers_key_is_free(
    make_desk: MakeDesk, owner: Person, stranger: Person
) -> None:
    make_desk(["Hi.", "Hi."])
    key = {"Idempotency-Key": "k-1"}
    body_of(owner.post("/agent/chat", {"message": "Hello"}, **key))
    before = rows()
    assert error(owner.post("/agent/chat", {"message": "Other"}, **key)) == (422, "idempotency_key_reused")
    assert rows() == before
    assert stranger.post("/agent/chat", {"message": "Other"}, **key).status_code == 200


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"agent": "nobody"}, (400, "agent_not_found")),
        ({"agent": "back-office"}, (403, "forbidden")),
        ({"persona": "pirate"}, (400, "persona_not_found")),
        ({"model": "gpt-99"}, (400, "model_not_offered")),
        ({"threadId": "unknown"}, (404, "not_found")),
        ({"regenerate": True}, (400, "regenerate_needs_thread")),
        ({"attachments": [{"mediaId": "m"}]}, (501, "not_supported")),
        ({"message": " "}, (400, "empty_message")),
        ({"uiCapabilities": {"components": "all"}}, (400, "bad_capabilities")),
        ({"mode": "later"}, (400, "invalid_body")),
    ],
)
def test_a_send_that_is_refused_stores_nothing(
    make_desk: MakeDesk, owner: Person, fields: dict[str, Any], expected: tuple[int, str]
) -> None:
    make_desk(["Never."])
    assert error(send(owner, **{"message": "Hello", **fields})) == expected
    assert rows() == (0, 0, 0, 0)


def test_a_busy_thread_does_not_regenerate_whatever_the_mode(make_desk: MakeDesk, owner: Person) -> None:
    gate = threading.Event()
    make_desk(lambda request: hold(gate, request))
    response = send(owner)
    thread_id = response["X-Agent-Thread-Id"]
    before = rows()
    try:
        for mode in ("auto", "queue", "interrupt"):
            assert error(send(owner, threadId=thread_id, regenerate=True, mode=mode)) == (409, "run_active")
        assert rows() == before
        assert owner.get(f"/agent/threads/{thread_id}").json()["activeRunId"] == response["X-Agent-Run-Id"]
    finally:
        gate.set()
    assert events_of(body_of(response))[-1][0] == "done"


async def hold(gate: threading.Event, request: ModelRequest) -> str:
    """An answer that waits for the test."""
    await asyncio.to_thread(gate.wait, 20)
    return "At last."


def test_regenerating_answers_the_last_question_again(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(["One.", "Two."])
    thread_id = send(owner)["X-Agent-Thread-Id"]
    wait_idle(owner, thread_id)
    response = owner.post("/agent/chat", {"threadId": thread_id, "regenerate": True, "message": None})
    assert events_of(body_of(response))[-1][0] == "done"
    messages = owner.get(f"/agent/threads/{thread_id}").json()["messages"]
    assert [message["content"] for message in messages] == ["Where is order 1042?", "Two."]


def wait_idle(owner: Person, thread_id: str) -> None:
    """Follow what is being answered to its end."""
    run_id = owner.get(f"/agent/threads/{thread_id}").json().get("activeRunId")
    if run_id:
        body_of(owner.get(f"/agent/chat/{run_id}/stream"))


# ---- cancel ---------------------------------------------------------------------------------------------------------


def test_a_cancelled_run_ends_with_cancelled_and_done_and_is_then_unknown(make_desk: MakeDesk, owner: Person) -> None:
    gate = threading.Event()
    make_desk(lambda request: hold(gate, request))
    response = send(owner)
    run_id = response["X-Agent-Run-Id"]
    answer = owner.post(f"/agent/chat/{run_id}/cancel")
    gate.set()
    assert answer.status_code == 200
    assert answer.json() == {"aborted": True}
    events = events_of(body_of(response))
    assert [name for name, _, _ in events[-2:]] == ["frame", "done"]
    assert events[-2][2] == {"kind": "cancelled"}
    assert error(owner.post(f"/agent/chat/{run_id}/cancel")) == (404, "not_found")


def test_a_deleted_thread_is_unknown_everywhere_and_its_run_is_stopped(make_desk: MakeDesk, owner: Person) -> None:
    gate = threading.Event()
    make_desk(lambda request: hold(gate, request))
    response = send(owner)
    run_id, thread_id = response["X-Agent-Run-Id"], response["X-Agent-Thread-Id"]
    assert owner.delete(f"/agent/threads/{thread_id}").json() == {"ok": True}
    gate.set()
    body_of(response)
    assert Run.objects.get(pk=run_id).status == "cancelled"
    message_id = Message.objects.filter(thread_id=thread_id).values_list("pk", flat=True)[0]
    for answer in (
        owner.get(f"/agent/threads/{thread_id}"),
        owner.patch(f"/agent/threads/{thread_id}", {"title": "x"}),
        owner.delete(f"/agent/threads/{thread_id}"),
        owner.post(f"/agent/threads/{thread_id}/promote"),
        owner.post(f"/agent/threads/{thread_id}/fork-from/{message_id}"),
        owner.delete(f"/agent/threads/{thread_id}/from/{message_id}"),
        owner.post(f"/agent/messages/{message_id}/feedback", {"value": "up"}),
        owner.post(f"/agent/chat/{run_id}/cancel"),
        owner.get(f"/agent/chat/{run_id}/stream"),
        send(owner, threadId=thread_id),
    ):
        assert answer.status_code == 404
    assert owner.get("/agent/threads").json() == []
