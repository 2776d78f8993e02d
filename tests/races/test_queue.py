"""Many at once on one conversation: one answer, nothing lost, nothing twice, in the order of arrival (spec 06 §6)."""

from __future__ import annotations

from typing import Any

from agent.domain.actor import Actor
from agent.domain.commands import NewRun
from agent.domain.ids import new_id
from agent.domain.queue import NewQueuedMessage
from agent.domain.states import OPEN_RUN
from agent.models import QueuedMessage, Run
from agent.store import get_store
from tests.races.conftest import Race

ALICE = Actor("alice")
GONE = {"raised": "MessageGone"}
ROUNDS = range(6)


def new_thread() -> str:
    return get_store().create_thread(actor=ALICE).id


def answered(thread_id: str) -> str:
    """A run that holds the thread and that nobody has begun."""
    store, run_id = get_store(), new_id()
    store.create_run(
        NewRun(id=run_id, thread_id=thread_id, actor=ALICE, input={}), ("persist:user", {"messageId": None})
    )
    assert store.claim_active_run(thread_id, run_id)
    return run_id


def wait(thread_id: str, content: str) -> str:
    message = NewQueuedMessage(thread_id=thread_id, actor=ALICE, content=content)
    return get_store().enqueue_message(message).id


def said(thread_id: str) -> list[str]:
    detail = get_store().get_thread(thread_id)
    assert detail is not None
    return [message.content for message in detail.messages if message.role == "user"]


def waiting(thread_id: str) -> list[str]:
    return [message.id for message in get_store().list_queue(thread_id)]


def holds_one(thread_id: str) -> str | None:
    """The holder: the only open run of the thread, if any."""
    holder = get_store().active_run_for_thread(thread_id)
    still = list(Run.objects.filter(thread_id=thread_id, status__in=OPEN_RUN).values_list("pk", flat=True))
    assert still == ([] if holder is None else [holder])
    return holder


def test_of_fifty_sends_at_once_one_starts_and_the_others_wait_in_order(race: Race) -> None:
    thread_id = new_thread()
    outcomes = race([("send", {"thread_id": thread_id, "message": f"m{number}"}) for number in range(50)])
    started = [one for one in outcomes if one.get("waits") is None]
    assert [one["run"] for one in started] == [holds_one(thread_id)]
    assert len(said(thread_id)) == 1
    queued = QueuedMessage.objects.filter(thread_id=thread_id).order_by("position")
    assert [message.position for message in queued] == list(range(49))
    assert {message.pk for message in queued} == {one["waits"] for one in outcomes if one.get("waits")}


def test_a_send_and_the_end_of_the_answer_do_not_miss_each_other(race: Race) -> None:
    for _ in ROUNDS:
        thread_id = new_thread()
        run_id = answered(thread_id)
        sent, end = race([("send", {"thread_id": thread_id, "message": "two"}), ("drive", {"run_id": run_id})])
        assert end == "completed"
        assert waiting(thread_id) == []
        assert holds_one(thread_id) == (sent["waits"] or sent["run"])
        assert said(thread_id) == ["two"]


def test_of_a_delete_and_the_start_of_a_message_one_wins(race: Race) -> None:
    for _ in ROUNDS:
        thread_id = new_thread()
        run_id, message_id = answered(thread_id), wait(thread_id, "two")
        removed, _, again, end = race(
            [
                ("remove", {"message_id": message_id}),
                ("kick", {"thread_id": thread_id}),
                ("remove", {"message_id": message_id}),
                ("drive", {"run_id": run_id}),
            ]
        )
        assert end == "completed"
        started = get_store().get_run(message_id) is not None
        assert (removed is True) + (again is True) + started == 1
        assert all(one in (True, GONE if started else {"raised": "NotFound"}) for one in (removed, again))
        assert said(thread_id) == (["two"] if started else [])
        assert holds_one(thread_id) == (message_id if started else None)


def test_of_many_drains_one_starts_the_next_message(race: Race) -> None:
    for _ in ROUNDS:
        thread_id = new_thread()
        first, second = wait(thread_id, "one"), wait(thread_id, "two")
        outcomes = race([("kick", {"thread_id": thread_id})] * 8)
        assert sorted(outcomes, key=str) == sorted([first, *[None] * 7], key=str)
        assert holds_one(thread_id) == first
        assert waiting(thread_id) == [second]


def test_a_kick_and_the_end_of_an_answer_start_a_message_once(race: Race) -> None:
    for _ in ROUNDS:
        thread_id = new_thread()
        run_id, message_id = answered(thread_id), wait(thread_id, "two")
        race([("drive", {"run_id": run_id}), *[("kick", {"thread_id": thread_id})] * 3])
        assert holds_one(thread_id) == message_id
        assert said(thread_id) == ["two"]


def test_an_interrupt_starts_its_message_however_the_answer_ends(race: Race) -> None:
    for _ in ROUNDS:
        thread_id = new_thread()
        run_id = answered(thread_id)
        second = [wait(thread_id, text) for text in ("later", "now")][1]
        race([("interrupt", {"message_id": second}), ("drive", {"run_id": run_id})])
        run = get_store().get_run(run_id)
        assert run is not None
        assert run.status in {"completed", "cancelled"}
        assert get_store().queue_pause(thread_id) is None
        assert get_store().get_run(second) is not None
        assert holds_one(thread_id) == second
        assert "now" in said(thread_id)


def test_a_repeated_key_of_twenty_clients_gives_one_run(race: Race) -> None:
    new = {"message": "one", "idempotency_key": "new", "fingerprint": "f" * 64}
    outcomes = race([("send", new)] * 20)
    assert len({one["run"] for one in outcomes}) == 1
    assert sum(not one["replayed"] for one in outcomes) == 1
    run = get_store().get_run(outcomes[0]["run"])
    assert run is not None
    assert Run.objects.count() == 1
    waits = {"thread_id": run.thread_id, "message": "two", "idempotency_key": "waits", "fingerprint": "0" * 64}
    outcomes = race([("send", waits)] * 20)
    assert [one["waits"] for one in outcomes] == waiting(run.thread_id) * 20


def test_a_deleted_conversation_keeps_nothing_whoever_sends_meanwhile(race: Race) -> None:
    for _ in ROUNDS:
        thread_id = new_thread()
        run_id = answered(thread_id)
        sends: list[tuple[str, dict[str, Any]]] = [("send", {"thread_id": thread_id, "message": "two"})] * 3
        outcomes = race([*sends, ("delete", {"thread_id": thread_id}), ("stop", {"run_id": run_id})])
        assert all("raised" not in one or one["raised"] == "NotFound" for one in outcomes[:3]), outcomes
        assert outcomes[3] is None
        assert not QueuedMessage.objects.filter(thread_id=thread_id).exists()
        assert not Run.objects.filter(thread_id=thread_id, status__in=OPEN_RUN).exists()
