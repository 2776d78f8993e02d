"""Messages that wait, over HTTP: exact shapes and statuses, who may what, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from agent.api.parsing import NUMBER_MAX
from agent.models import QueuedMessage, Run
from agent.store import get_store
from agent.testing import HeldRunner, drive_run, held_runner
from tests.edges.conftest import MakeDesk, Person, body_of, events_of

pytestmark = pytest.mark.django_db(transaction=True)

ITEM = {"id", "content", "position", "createdAt", "updatedAt"}


@pytest.fixture
def held() -> Iterator[HeldRunner]:
    """Runs wait until the test drives them."""
    with held_runner() as runner:
        yield runner


@pytest.fixture
def thread_id(make_desk: MakeDesk, held: HeldRunner, owner: Person) -> str:
    """A conversation of the owner that is being answered, in which two messages wait."""
    make_desk(lambda request: f"To {request.messages[-1].content}.")
    started = owner.post("/agent/chat", {"message": "one", "mode": "queue"}).json()["threadId"]
    for text in ("two", "three"):
        assert send(owner, started, text).status_code == 202
    return str(started)


def send(who: Person, thread_id: str, message: str, **fields: Any) -> Any:
    return who.post("/agent/chat", {"message": message, "threadId": thread_id, **fields})


def state(who: Person, thread_id: str) -> dict[str, Any]:
    answer = who.get(f"/agent/threads/{thread_id}/queue")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def waiting(who: Person, thread_id: str) -> list[str]:
    return [item["content"] for item in state(who, thread_id)["items"]]


def ids(who: Person, thread_id: str) -> list[str]:
    return [item["id"] for item in state(who, thread_id)["items"]]


def holder(thread_id: str) -> str:
    run_id = get_store().active_run_for_thread(thread_id)
    assert run_id is not None
    return run_id


def error(response: Any) -> tuple[int, str | None]:
    return response.status_code, response.json().get("code")


# ---- shapes ---------------------------------------------------------------------------------------------------------


def test_a_message_that_waits_is_202_with_its_place_and_the_queue(thread_id: str, owner: Person) -> None:
    answer = send(owner, thread_id, "four", agent="desk", pageContext={"at": "till"})
    assert answer.status_code == 202
    told = answer.json()
    assert {name: told[name] for name in ("queued", "threadId", "position")} == {
        "queued": True,
        "threadId": thread_id,
        "position": 2,
    }
    assert set(told) == {"queued", "threadId", "messageId", "position", "queue"}
    assert [item["content"] for item in told["queue"]["items"]] == ["two", "three", "four"]
    assert [item["position"] for item in told["queue"]["items"]] == [0, 1, 2]
    assert set(told["queue"]["items"][0]) == ITEM
    assert set(told["queue"]["items"][2]) == ITEM | {"agent"}  # neither its actor nor its page
    assert told["queue"]["items"][2]["id"] == told["messageId"]
    assert told["queue"]["paused"] is None
    assert state(owner, thread_id) == told["queue"]
    assert owner.get(f"/agent/threads/{thread_id}").json()["queue"] == told["queue"]


def test_an_interrupt_says_that_it_stops_the_answer(thread_id: str, owner: Person) -> None:
    assert get_store().claim_run(holder(thread_id), "worker", 60) is not None
    told = send(owner, thread_id, "now", mode="interrupt").json()
    assert (told["interrupting"], told["position"], told["queue"]["items"][0]["interrupt"]) == (True, 0, True)
    assert "runId" not in told


def test_the_last_frame_of_an_answer_tells_what_was_started(thread_id: str, owner: Person) -> None:
    run_id, waits = holder(thread_id), ids(owner, thread_id)
    drive_run(run_id)
    events = events_of(body_of(owner.get(f"/agent/chat/{run_id}/stream")))
    (_, _, frame), (last, _, _) = events[-2:]
    assert (frame["kind"], last) == ("queue", "done")
    assert frame["started"] == {"messageId": waits[0], "runId": waits[0]}
    assert [item["id"] for item in frame["queue"]["items"]] == [waits[1]]


def test_a_pause_is_told_with_its_reason_and_lifted_by_a_resume(thread_id: str, owner: Person) -> None:
    first, second = ids(owner, thread_id)
    assert owner.post(f"/agent/chat/{holder(thread_id)}/cancel").json() == {"aborted": True}
    paused = state(owner, thread_id)["paused"]
    assert set(paused) == {"reason", "at"}
    assert paused["reason"] == "cancelled"
    resumed = owner.post(f"/agent/threads/{thread_id}/queue/resume").json()
    assert set(resumed) == {"items", "paused", "runId"}
    assert (resumed["paused"], resumed["runId"], [item["id"] for item in resumed["items"]]) == (None, first, [second])
    assert set(owner.post(f"/agent/threads/{thread_id}/queue/resume").json()) == {"items", "paused"}


def test_a_waiting_message_is_changed_moved_and_removed(thread_id: str, owner: Person) -> None:
    first, second = ids(owner, thread_id)
    answer = owner.patch(f"/agent/queue/{second}", {"message": "three\x00!", "position": 0})
    assert answer.status_code == 200
    assert [item["content"] for item in answer.json()["items"]] == ["three\ufffd!", "two"]
    assert [item["id"] for item in owner.patch(f"/agent/queue/{second}", {"position": 10**30}).json()["items"]] == [
        first,
        second,
    ]
    assert owner.patch(f"/agent/queue/{second}", {"position": NUMBER_MAX + 1}).status_code == 200
    assert owner.patch(f"/agent/queue/{second}", {}).status_code == 200
    assert owner.patch(f"/agent/queue/{second}", {"attachments": None}).status_code == 200
    assert [item["id"] for item in owner.delete(f"/agent/queue/{first}").json()["items"]] == [second]
    assert owner.delete(f"/agent/threads/{thread_id}/queue").json() == {"items": [], "paused": None}


def test_sending_a_waiting_message_now_stops_the_answer_or_starts_it(thread_id: str, owner: Person) -> None:
    first, second = ids(owner, thread_id)
    assert get_store().claim_run(holder(thread_id), "worker", 60) is not None
    told = owner.post(f"/agent/queue/{second}/interrupt").json()
    assert (told["interrupting"], [item["id"] for item in told["items"]]) == (True, [second, first])
    assert "runId" not in told


PLACES: tuple[object, ...] = (-1, 1.5, "1", True, None, [])
WRONG: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"message": ""}, "message", "empty_message"),
    ({"message": "\u200b \n"}, "message", "empty_message"),
    ({"message": None}, "message", "invalid_body"),
    ({"message": 5}, "message", "invalid_body"),
    *(({"position": value}, "position", "invalid_body") for value in PLACES),
    ({"attachments": [{"mediaId": "m", "url": "x"}]}, "attachments.0.url", "invalid_body"),
    ({"attachments": "m"}, "attachments", "invalid_body"),
)


def test_a_change_of_a_wrong_kind_is_400_names_its_field_and_changes_nothing(thread_id: str, owner: Person) -> None:
    before = list(QueuedMessage.objects.order_by("pk").values())
    path = f"/agent/queue/{ids(owner, thread_id)[0]}"
    for body, field, code in WRONG:
        answer = owner.patch(path, {"position": 1, **body})
        assert (*error(answer), list(answer.json()["fields"])) == (400, code, [field]), body
    assert list(QueuedMessage.objects.order_by("pk").values()) == before


def test_attachments_are_not_taken_yet(thread_id: str, owner: Person) -> None:
    path = f"/agent/queue/{ids(owner, thread_id)[0]}"
    assert error(owner.patch(path, {"attachments": [{"mediaId": "m"}]})) == (501, "not_supported")


# ---- too late -------------------------------------------------------------------------------------------------------

OF_A_MESSAGE: dict[str, Callable[[Person, str], Any]] = {
    "patch": lambda who, message: who.patch(f"/agent/queue/{message}", {"message": "new"}),
    "remove": lambda who, message: who.delete(f"/agent/queue/{message}"),
    "interrupt": lambda who, message: who.post(f"/agent/queue/{message}/interrupt"),
}


def test_a_message_that_started_is_410_and_one_that_was_removed_404(thread_id: str, owner: Person) -> None:
    started, removed = ids(owner, thread_id)
    owner.delete(f"/agent/queue/{removed}")
    drive_run(holder(thread_id))
    before = Run.objects.count()
    for name, ask in OF_A_MESSAGE.items():
        assert error(ask(owner, started)) == (410, "message_gone"), name
        assert error(ask(owner, removed)) == (404, "not_found"), name
    assert Run.objects.count() == before


# ---- who may what ---------------------------------------------------------------------------------------------------

ROUTES: dict[str, Callable[[Person, str, str], Any]] = {
    "read": lambda who, thread, message: who.get(f"/agent/threads/{thread}/queue"),
    "clear": lambda who, thread, message: who.delete(f"/agent/threads/{thread}/queue"),
    "resume": lambda who, thread, message: who.post(f"/agent/threads/{thread}/queue/resume"),
    **{name: lambda who, thread, message, ask=ask: ask(who, message) for name, ask in OF_A_MESSAGE.items()},  # type: ignore[misc]
}


@pytest.mark.parametrize("who", ["stranger", "operator"])
def test_anothers_queue_is_403_and_nothing_is_told_or_done(
    request: pytest.FixtureRequest, thread_id: str, owner: Person, who: str
) -> None:
    before = list(QueuedMessage.objects.order_by("pk").values())
    message = ids(owner, thread_id)[0]
    for name, ask in ROUTES.items():
        answer = ask(request.getfixturevalue(who), thread_id, message)
        assert error(answer) == (403, "forbidden"), name
        assert b"two" not in answer.content
    assert list(QueuedMessage.objects.order_by("pk").values()) == before


def test_a_queue_that_nobody_has_is_404(thread_id: str, owner: Person) -> None:
    for missing in ("unknown", "%00", "%ED%A0%80", "x" * 5000, "%F0%9F%98%80"):
        for name, ask in ROUTES.items():
            assert error(ask(owner, missing, missing)) == (404, "not_found"), (name, missing)


def test_the_queue_of_a_deleted_conversation_is_404_and_empty(thread_id: str, owner: Person) -> None:
    message = ids(owner, thread_id)[0]
    owner.delete(f"/agent/threads/{thread_id}")
    for name, ask in ROUTES.items():
        assert error(ask(owner, thread_id, message)) == (404, "not_found"), name
    assert not QueuedMessage.objects.exists()


def test_nobody_is_401(thread_id: str, owner: Person) -> None:
    for name, ask in ROUTES.items():
        assert error(ask(Person(owner.user, Client()), thread_id, "m")) == (401, "not_authenticated"), name


# ---- idempotency, stores without a queue ----------------------------------------------------------------------------


def test_a_repeat_of_a_queued_send_is_its_202_with_the_queue_as_it_is_now(thread_id: str, owner: Person) -> None:
    body, key = {"message": "four", "threadId": thread_id}, {"Idempotency-Key": "k-1"}
    first = owner.post("/agent/chat", body, **key).json()
    owner.delete(f"/agent/queue/{ids(owner, thread_id)[0]}")
    again = owner.post("/agent/chat", body, **key)
    assert again.status_code == 202
    assert again.json()["messageId"] == first["messageId"]
    assert (first["position"], again.json()["position"]) == (2, 1)
    assert waiting(owner, thread_id) == ["three", "four"]


def test_a_store_without_the_capability_answers_501_and_says_so(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(["Hi."], STORE="tests.flows.test_queue.NoQueue")
    answer = owner.post("/agent/chat", {"message": "one"})
    body_of(answer)
    thread = answer["X-Agent-Thread-Id"]
    for name, ask in ROUTES.items():
        assert error(ask(owner, thread, "m")) == (501, "not_supported"), name
    assert owner.get("/agent/config").json()["queue"] == {"enabled": False}
    assert owner.get(f"/agent/threads/{thread}").json()["queue"] == {"items": [], "paused": None}
