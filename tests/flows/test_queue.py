"""Typing ahead: what becomes of a message that is sent while another one is being answered (spec 06)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agent.domain.actor import Actor
from agent.domain.commands import NewRun
from agent.domain.queue import NewQueuedMessage, QueuePause
from agent.errors import Invalid, MessageGone, NotAllowed, NotFound, NotSupported, OverQuota, RunActive
from agent.flows import queue, threads
from agent.flows.admission import Admitted, Queued, chat
from agent.flows.cancel import cancel
from agent.flows.queue import Edit
from agent.flows.recovery import end_stream, recover
from agent.flows.starts import Send
from agent.registry import agent, isolated_registry
from agent.sinks import notices
from agent.store import OrmStore, get_store, in_store
from tests.flows.conftest import ALICE, Site

MakeSite = Callable[..., Site]
BOB = Actor("bob")


def busy(desk: Site) -> Admitted:
    """A thread whose first message is being answered: nobody has begun yet."""
    return desk.send("one")


def pause(desk: Site, thread_id: str) -> tuple[str, str | None] | None:
    held = desk.store.queue_pause(thread_id)
    return None if held is None else (held.reason, held.message)


def kinds(desk: Site, run_id: str) -> list[str]:
    return [str(frame.get("kind", "end")) for frame in desk.frames(run_id)]


def queue_frame(desk: Site, run_id: str) -> dict[str, Any]:
    [frame] = [frame for frame in desk.frames(run_id) if frame.get("kind") == "queue"]
    return frame


# ---- sending --------------------------------------------------------------------------------------------------------


def test_messages_sent_meanwhile_are_answered_one_after_another_in_their_order(site: MakeSite) -> None:
    desk = site(["First.", "Second.", "Third."])
    first = busy(desk)
    waits = [desk.wait(text, first.thread_id) for text in ("two", "three")]
    assert [one.to_json()["position"] for one in waits] == [0, 1]
    for run_id in (first.run_id, waits[0].message_id, waits[1].message_id):
        assert desk.drive(run_id).status == "completed"
    said = [message.content for message in desk.messages(first.thread_id)]
    assert said == ["one", "First.", "two", "Second.", "three", "Third."]
    assert desk.runner.started == [first.run_id, waits[0].message_id, waits[1].message_id]
    assert desk.store.active_run_for_thread(first.thread_id) is None


def test_the_run_of_a_message_that_waited_has_its_id_and_all_that_the_send_named(site: MakeSite) -> None:
    desk = site(["First.", "Second."])
    agent(name="shop", prompt="Sell.")(type("Shop", (), {}))
    actor = Actor("alice", ("staff",))
    first = desk.send("one", actor=actor)
    sent = {"page_context": {"at": 1}, "ui_capabilities": {"components": []}, "host_context": {"shop": 7}}
    message_id = desk.wait("two", first.thread_id, actor=actor, agent="shop", **sent).message_id
    desk.drive(first.run_id)
    run = desk.drive(message_id)
    assert (run.id, run.trigger, run.agent_name, run.actor) == (message_id, "queue", "shop", actor)
    given = {"pageContext": {"at": 1}, "uiCapabilities": {"components": []}, "hostContext": {"shop": 7}}
    assert {name: run.input[name] for name in given} == given
    assert desk.steps(message_id)[0].name == "persist:user"


def test_a_plain_send_on_a_busy_thread_waits_and_chat_refuses(site: MakeSite) -> None:
    desk = site(["First."])
    first = busy(desk)
    with pytest.raises(RunActive):
        chat(ALICE, Send(message="two", thread_id=first.thread_id))
    outcome = desk.submit("two", thread_id=first.thread_id)
    assert isinstance(outcome, Queued)
    assert outcome.to_json() == {
        "queued": True,
        "threadId": first.thread_id,
        "messageId": outcome.message_id,
        "position": 0,
        "queue": outcome.queue.to_json(),
    }
    [item] = outcome.queue.to_json()["items"]
    assert set(item) == {"id", "content", "position", "createdAt", "updatedAt"}
    assert [message.content for message in desk.messages(first.thread_id)] == ["one"]


def test_queue_on_an_idle_thread_is_drained_at_once(site: MakeSite) -> None:
    desk = site(["First.", "Second."])
    new = desk.submit("one", mode="queue")
    assert isinstance(new, Queued)
    assert new.run_id == new.message_id
    assert new.to_json()["position"] == 0
    assert new.queue.items == ()
    assert desk.drive(new.message_id).status == "completed"
    known = desk.wait("two", new.thread_id, mode="queue")
    assert known.run_id == known.message_id
    assert desk.drive(known.message_id).status == "completed"
    assert len(desk.messages(new.thread_id)) == 4


def test_an_interrupt_goes_first_and_stops_the_running_answer(site: MakeSite) -> None:
    desk = site(lambda request: f"To {request.messages[-1].content}.")
    first = busy(desk)
    lease = desk.store.claim_run(first.run_id, "worker", 60)
    assert lease is not None
    desk.wait("later", first.thread_id)
    desk.store.set_queue_pause(first.thread_id, QueuePause(reason="run_failed", at="then"))
    now = desk.wait("now", first.thread_id, mode="interrupt")
    assert (now.interrupting, now.run_id, now.to_json()["interrupting"]) == (True, None, True)
    assert desk.waiting(first.thread_id) == ["now", "later"]
    assert pause(desk, first.thread_id) is None
    assert desk.runner.signalled == [first.run_id]
    desk.store.release_run(lease)
    assert desk.drive(first.run_id).status == "cancelled"
    assert desk.store.active_run_for_thread(first.thread_id) == now.message_id
    assert desk.drive(now.message_id).status == "completed"
    assert pause(desk, first.thread_id) is None
    assert desk.waiting(first.thread_id) == []


def test_an_interrupt_of_a_run_that_no_worker_has_starts_at_once(site: MakeSite) -> None:
    desk = site(["Now."])
    first = busy(desk)
    now = desk.wait("now", first.thread_id, mode="interrupt")
    assert (now.interrupting, now.run_id) == (True, now.message_id)
    run = desk.store.get_run(first.run_id)
    assert run is not None
    assert run.status == "cancelled"
    assert kinds(desk, first.run_id) == ["queue", "cancelled", "end"]
    assert queue_frame(desk, first.run_id)["started"] == {"messageId": now.message_id, "runId": now.message_id}
    assert desk.drive(now.message_id).status == "completed"


@pytest.mark.parametrize("mode", ["auto", "interrupt"])
def test_an_idle_thread_with_a_paused_queue_still_answers_a_plain_send_at_once(site: MakeSite, mode: str) -> None:
    desk = site([RuntimeError("away"), "Two."], MODEL_RETRIES=0)
    first = busy(desk)
    desk.wait("waits", first.thread_id)
    desk.drive(first.run_id)
    sent = desk.submit("two", thread_id=first.thread_id, mode=mode)
    assert isinstance(sent, Admitted)
    assert desk.drive(sent.run_id).status == "completed"
    assert desk.waiting(first.thread_id) == ["waits"]
    assert pause(desk, first.thread_id) is not None


def test_a_send_goes_behind_what_waits_on_an_idle_thread_and_that_is_started(site: MakeSite) -> None:
    desk = site(["One.", "Before.", "Mine."])
    run = desk.turn("one")
    before = left_behind(desk, run.thread_id, "before")
    sent = desk.wait("mine", run.thread_id)
    assert sent.run_id is None
    assert desk.waiting(run.thread_id) == ["mine"]
    assert desk.store.active_run_for_thread(run.thread_id) == before


def left_behind(desk: Site, thread_id: str, content: str) -> str:
    """A message that waits for an idle thread: what a crash of an older release, or another store, may leave."""
    message = NewQueuedMessage(thread_id=thread_id, actor=ALICE, content=content)
    return desk.store.enqueue_message(message).id


def test_a_regenerate_of_a_busy_thread_is_refused_whatever_the_mode(site: MakeSite) -> None:
    desk = site(["First."])
    first = busy(desk)
    for mode in ("auto", "queue", "interrupt"):
        with pytest.raises(RunActive):
            desk.submit(None, thread_id=first.thread_id, regenerate=True, mode=mode)
    assert desk.waiting(first.thread_id) == []
    run = desk.store.get_run(first.run_id)
    assert run is not None
    assert run.cancel_requested_at is None


def test_a_regenerate_of_an_idle_thread_starts_whatever_waits(site: MakeSite) -> None:
    desk = site(["One.", "Again."])
    run = desk.turn("one")
    left_behind(desk, run.thread_id, "waits")
    sent = desk.submit(None, thread_id=run.thread_id, regenerate=True, mode="queue")
    assert isinstance(sent, Admitted)


def test_what_is_refused_is_not_queued(site: MakeSite) -> None:
    desk = site(["First."])
    first = busy(desk)
    for name in ("agent", "persona", "model"):
        named: dict[str, Any] = {name: "nobody"}
        with pytest.raises(Invalid):
            desk.submit("two", thread_id=first.thread_id, **named)
    with pytest.raises(NotAllowed):
        desk.submit("two", thread_id=first.thread_id, actor=BOB)
    assert desk.waiting(first.thread_id) == []


# ---- the drain ------------------------------------------------------------------------------------------------------


def test_the_end_of_a_run_records_and_tells_what_was_started(site: MakeSite) -> None:
    desk = site(["First.", "Second."])
    first = busy(desk)
    waits = [desk.wait(text, first.thread_id) for text in ("two", "three")]
    desk.drive(first.run_id)
    started = {"messageId": waits[0].message_id, "runId": waits[0].message_id}
    recorded = desk.steps(first.run_id)[-1]
    assert (recorded.name, recorded.payload["started"]) == ("persist:run:end", started)
    assert kinds(desk, first.run_id)[-2:] == ["queue", "end"]
    frame = queue_frame(desk, first.run_id)
    assert frame["started"] == started
    assert [(item["content"], item["position"]) for item in frame["queue"]["items"]] == [("three", 0)]
    assert frame["queue"]["paused"] is None
    plain = desk.turn("alone")
    assert desk.steps(plain.id)[-1].payload == {"outcome": "completed", "started": None}
    assert "queue" not in kinds(desk, plain.id)


def test_a_failure_pauses_what_waits_with_the_sentence_that_was_shown(site: MakeSite) -> None:
    desk = site([RuntimeError("secret"), "Second."], MODEL_RETRIES=0, EXPOSE_ERRORS=False)
    first = busy(desk)
    desk.wait("two", first.thread_id)
    assert desk.drive(first.run_id).status == "failed"
    shown = desk.frames(first.run_id)[-1]["end"]["message"]
    assert pause(desk, first.thread_id) == ("run_failed", shown)
    assert "secret" not in shown
    assert desk.waiting(first.thread_id) == ["two"]
    assert desk.store.active_run_for_thread(first.thread_id) is None
    assert kinds(desk, first.run_id)[-2:] == ["queue", "end"]
    assert queue_frame(desk, first.run_id)["queue"]["paused"]["reason"] == "run_failed"


def test_a_cancel_pauses_what_waits_unless_it_is_to_go_first(site: MakeSite) -> None:
    desk = site(["Second."])
    first = busy(desk)
    desk.wait("two", first.thread_id)
    assert cancel(ALICE, first.run_id)
    assert pause(desk, first.thread_id) == ("cancelled", None)
    assert kinds(desk, first.run_id) == ["queue", "cancelled", "end"]
    assert desk.store.active_run_for_thread(first.thread_id) is None


def test_a_failure_with_nothing_waiting_pauses_nothing(site: MakeSite) -> None:
    desk = site([RuntimeError("away"), "Two."], MODEL_RETRIES=0)
    failed = desk.turn("one")
    assert pause(desk, failed.thread_id) is None
    assert "queue" not in kinds(desk, failed.id)


def test_a_reason_that_is_there_already_is_kept(site: MakeSite) -> None:
    desk = site(["One."])
    first = busy(desk)
    desk.wait("two", first.thread_id)
    held = QueuePause(reason="run_failed", message="It broke.", at="then")
    desk.store.set_queue_pause(first.thread_id, held)
    desk.drive(first.run_id)
    assert desk.store.queue_pause(first.thread_id) == held
    assert desk.waiting(first.thread_id) == ["two"]


def test_a_cancel_that_comes_after_the_last_model_call_counts_as_cancelled(site: MakeSite) -> None:
    ids: list[Admitted] = []

    async def answer(_: object) -> str:
        await in_store(get_store().request_cancel, ids[0].run_id)
        return "Said."

    desk = site(answer)
    ids.append(busy(desk))
    desk.wait("two", ids[0].thread_id)
    assert desk.drive(ids[0].run_id).status == "cancelled"
    assert pause(desk, ids[0].thread_id) == ("cancelled", None)
    assert [message.content for message in desk.messages(ids[0].thread_id)] == ["one", "Said."]


def test_a_message_that_cannot_start_still_waits_under_its_own_id_with_every_field(site: MakeSite) -> None:
    desk = site(["First."])
    agent(name="shop", prompt="Sell.")(type("Shop", (), {}))
    first = busy(desk)
    waits = desk.wait("two", first.thread_id, agent="shop", page_context={"at": 1})
    before = desk.store.get_queued_message(waits.message_id)
    with isolated_registry():  # a deploy later, without that agent
        assert desk.drive(first.run_id).status == "completed"
    assert desk.store.get_queued_message(waits.message_id) == before
    assert pause(desk, first.thread_id) == ("start_failed", "There is no such agent.")
    assert desk.store.get_run(waits.message_id) is None
    assert desk.store.active_run_for_thread(first.thread_id) is None
    assert [message.content for message in desk.messages(first.thread_id)] == ["one", "First."]
    assert queue_frame(desk, first.run_id)["queue"]["paused"]["reason"] == "start_failed"


class Limited:
    """A quota that is used up by those who are named."""

    blocked: set[str] = set()
    asked: list[str] = []

    def report(self, actor: Actor) -> dict[str, Any]:
        self.asked.append(actor.ref)
        if "broken" in self.blocked:
            get_store().thread_scope("x")
            raise RuntimeError("the ledger is away")
        blocked = {"period": "day", "reason": None} if actor.ref in self.blocked else None
        return {"windows": [], "blocked": blocked}


@pytest.fixture
def limited() -> type[Limited]:
    Limited.blocked, Limited.asked = set(), []
    return Limited


def test_a_quota_that_is_used_up_pauses_and_names_its_period(site: MakeSite, limited: type[Limited]) -> None:
    desk = site(["First."], QUOTA={"day": {"tokens": 1}}, QUOTA_POLICY=f"{__name__}.Limited")
    first = busy(desk)
    waits = desk.wait("two", first.thread_id)
    limited.blocked = {"alice"}
    with pytest.raises(OverQuota):
        desk.submit("three", thread_id=first.thread_id)
    desk.drive(first.run_id)
    reason, message = pause(desk, first.thread_id) or ("", "")
    assert reason == "quota_exceeded"
    assert "day" in (message or "")
    assert desk.waiting(first.thread_id) == ["two"]
    assert queue.resume(ALICE, first.thread_id).run_id is None  # still used up
    limited.blocked = set()
    assert queue.resume(ALICE, first.thread_id).run_id == waits.message_id


def test_a_quota_that_cannot_be_asked_is_no_verdict(site: MakeSite, limited: type[Limited]) -> None:
    desk = site(["First.", "Second."], QUOTA={"day": {"tokens": 1}}, QUOTA_POLICY=f"{__name__}.Limited")
    first = busy(desk)
    waits = desk.wait("two", first.thread_id)
    limited.blocked = {"broken"}
    desk.drive(first.run_id)
    assert desk.store.active_run_for_thread(first.thread_id) == waits.message_id


class LosesHeads(OrmStore):
    """A store whose messages vanish just as they are to start, as they may where nothing locks."""

    def remove_queued_message(self, message_id: str) -> bool:
        super().remove_queued_message(message_id)
        return not message_id.startswith("gone")


@pytest.mark.parametrize(("gone", "starts"), [(3, True), (8, False)])
def test_messages_that_are_gone_are_passed_over_eight_times_at_most(site: MakeSite, gone: int, starts: bool) -> None:
    desk = site(["First.", "Last."], STORE=f"{__name__}.LosesHeads")
    first = busy(desk)
    for number in range(gone):
        message = NewQueuedMessage(id=f"gone-{number}", thread_id=first.thread_id, actor=ALICE, content="x")
        desk.store.enqueue_message(message)
    last = desk.wait("last", first.thread_id)
    assert desk.drive(first.run_id).status == "completed"
    assert desk.store.active_run_for_thread(first.thread_id) == (last.message_id if starts else None)


# ---- dead holders ---------------------------------------------------------------------------------------------------


def test_a_holder_that_is_over_or_missing_is_replaced(site: MakeSite) -> None:
    desk = site(["One.", "Two.", "Three."])
    run = desk.turn("one")
    for holder in (run.id, "missing"):
        assert desk.store.claim_active_run(run.thread_id, holder)
        sent = desk.submit("next", thread_id=run.thread_id)
        assert isinstance(sent, Admitted)
        assert desk.drive(sent.run_id).status == "completed"


def test_a_holder_whose_worker_is_known_to_be_gone_for_good_is_failed_with_its_calls(site: MakeSite) -> None:
    desk = site(["Two."])
    first = busy(desk)
    exhaust(desk, first.run_id)
    assert isinstance(desk.submit("waits", thread_id=first.thread_id), Queued)  # a runner that cannot tell is alive
    queue.clear(ALICE, first.thread_id)
    desk.runner.is_alive = lambda run_id: False  # type: ignore[method-assign]
    sent = desk.submit("two", thread_id=first.thread_id)
    assert isinstance(sent, Admitted)
    dead = desk.store.get_run(first.run_id)
    assert dead is not None
    assert (dead.status, dead.error_code) == ("failed", "run_failed")
    assert desk.frames(first.run_id)[-1]["end"]["code"] == "run_failed"
    assert pause(desk, first.thread_id) is None
    assert desk.drive(sent.run_id).status == "completed"


def exhaust(desk: Site, run_id: str) -> None:
    """Claim a run over a lapsed lease as often as allowed, and let the last lease lapse too."""
    now = desk.store.clock()
    for attempt in range(7):
        at = now + timedelta(seconds=61 * attempt)
        desk.store.clock = lambda at=at: at  # type: ignore[misc]
        assert attempt == 6 or desk.store.claim_run(run_id, "poison", 60) is not None


def test_what_waits_behind_a_dead_holder_is_started_by_the_next_send_in_order(site: MakeSite) -> None:
    desk = site(["One.", "Two.", "Three."])
    run = desk.turn("one")
    before = left_behind(desk, run.thread_id, "two")
    desk.store.set_active_run(run.thread_id, "missing")
    sent = desk.wait("three", run.thread_id)
    assert (sent.run_id, desk.store.active_run_for_thread(run.thread_id)) == (None, before)


# ---- kicks ----------------------------------------------------------------------------------------------------------


def test_loading_a_thread_and_recovery_start_what_waits_for_an_idle_one(site: MakeSite) -> None:
    desk = site(["One."] * 4)
    by_reading, by_recovery = desk.turn("one"), desk.turn("one")
    for run in (by_reading, by_recovery):
        left_behind(desk, run.thread_id, "waits")
    detail, state = threads.read(ALICE, by_reading.thread_id)
    assert (detail.summary.active_run_id, state.items) == (desk.runner.started[-1], ())
    recover()
    assert desk.waiting(by_recovery.thread_id) == []
    assert desk.store.active_run_for_thread(by_recovery.thread_id) == desk.runner.started[-1]
    assert recover() == 0


def test_a_kick_starts_nothing_on_a_busy_thread_and_nothing_that_is_paused(site: MakeSite) -> None:
    desk = site(["One."])
    first = busy(desk)
    desk.wait("two", first.thread_id)
    assert queue.kick(first.thread_id) is None
    cancel(ALICE, first.run_id)
    assert queue.kick(first.thread_id) is None
    threads.read(ALICE, first.thread_id)
    recover()
    assert desk.waiting(first.thread_id) == ["two"]
    assert queue.kick("nobody") is None


# ---- what the owner does with what waits ----------------------------------------------------------------------------


def test_a_waiting_message_is_edited_moved_and_removed(site: MakeSite) -> None:
    desk = site(["One."])
    thread_id = busy(desk).thread_id
    a, b, c = (desk.wait(text, thread_id).message_id for text in "abc")
    state = queue.edit(ALICE, c, Edit(message="C\x00", position=0))
    assert [item.content for item in state.items] == ["C\ufffd", "a", "b"]
    assert [item.id for item in queue.edit(ALICE, c, Edit(position=99)).items] == [a, b, c]
    assert [item.id for item in queue.remove(ALICE, b).items] == [a, c]
    with pytest.raises(Invalid) as refused:
        queue.edit(ALICE, a, Edit(message="\u200b "))
    assert refused.value.code == "empty_message"
    with pytest.raises(NotSupported):
        queue.edit(ALICE, a, Edit(attachments=("m",)))
    assert desk.waiting(thread_id) == ["a", "C\ufffd"]


def test_a_message_that_started_is_gone_and_one_that_was_removed_is_unknown(site: MakeSite) -> None:
    desk = site(["One.", "Two."])
    first = busy(desk)
    started, removed = (desk.wait(text, first.thread_id).message_id for text in ("two", "three"))
    queue.remove(ALICE, removed)
    desk.drive(first.run_id)
    for act in (queue.remove, queue.interrupt, edit_text):
        with pytest.raises(MessageGone):
            act(ALICE, started)
        with pytest.raises(NotAllowed):
            act(BOB, started)
        for unknown in (removed, "nobody"):
            with pytest.raises(NotFound):
                act(ALICE, unknown)


def edit_text(actor: Actor, message_id: str) -> object:
    return queue.edit(actor, message_id, Edit(message="new"))


def test_another_persons_queue_is_closed(site: MakeSite) -> None:
    desk = site(["One."])
    thread_id = busy(desk).thread_id
    message_id = desk.wait("two", thread_id).message_id
    for of_thread in (queue.read, queue.clear, queue.resume):
        with pytest.raises(NotAllowed):
            of_thread(BOB, thread_id)
        with pytest.raises(NotFound):
            of_thread(ALICE, "nobody")
    for act in (queue.remove, queue.interrupt, edit_text):
        with pytest.raises(NotAllowed):
            act(BOB, message_id)
    assert desk.waiting(thread_id) == ["two"]


def test_clearing_removes_all_that_waits_and_lifts_the_pause(site: MakeSite) -> None:
    desk = site(["One."])
    first = busy(desk)
    desk.wait("two", first.thread_id)
    cancel(ALICE, first.run_id)
    assert queue.clear(ALICE, first.thread_id).to_json() == {"items": [], "paused": None}
    assert pause(desk, first.thread_id) is None


def test_resuming_lifts_the_pause_and_starts_the_next_message(site: MakeSite) -> None:
    desk = site(["Two.", "Three."])
    first = busy(desk)
    waits = [desk.wait(text, first.thread_id) for text in ("two", "three")]
    cancel(ALICE, first.run_id)
    resumed = queue.resume(ALICE, first.thread_id)
    assert resumed.run_id == waits[0].message_id
    assert [item.id for item in resumed.state.items] == [waits[1].message_id]
    assert queue.resume(ALICE, first.thread_id).run_id is None  # it is being answered
    desk.drive(waits[0].message_id)
    assert desk.drive(waits[1].message_id).status == "completed"


def test_a_waiting_message_that_interrupts_goes_first(site: MakeSite) -> None:
    desk = site(lambda request: f"To {request.messages[-1].content}.")
    first = busy(desk)
    a, b = (desk.wait(text, first.thread_id).message_id for text in "ab")
    lease = desk.store.claim_run(first.run_id, "worker", 60)
    assert lease is not None
    moved = queue.interrupt(ALICE, b)
    assert (moved.interrupting, moved.run_id) == (True, None)
    assert [(item.id, item.interrupt) for item in moved.state.items] == [(b, True), (a, False)]
    assert moved.state.to_json()["items"][0]["interrupt"] is True
    desk.store.release_run(lease)
    assert desk.drive(first.run_id).status == "cancelled"
    assert desk.store.active_run_for_thread(first.thread_id) == b
    assert desk.drive(b).status == "completed"  # and the natural end starts the other
    assert desk.store.active_run_for_thread(first.thread_id) == a


def test_an_interrupt_on_an_idle_thread_starts_the_message(site: MakeSite) -> None:
    desk = site(["Two."])
    first = busy(desk)
    a, b = (desk.wait(text, first.thread_id).message_id for text in "ab")
    cancel(ALICE, first.run_id)
    moved = queue.interrupt(ALICE, b)
    assert (moved.interrupting, moved.run_id, [item.id for item in moved.state.items]) == (False, b, [a])


class KeepsNoFlag(OrmStore):
    def update_queued_message(self, message_id: str, patch: Any) -> Any:
        return self.get_queued_message(message_id)


def test_where_the_flag_is_not_kept_nothing_is_stopped(site: MakeSite) -> None:
    desk = site(["One."], STORE=f"{__name__}.KeepsNoFlag")
    first = busy(desk)
    a, b = (desk.wait(text, first.thread_id).message_id for text in "ab")
    with pytest.raises(NotSupported):
        queue.interrupt(ALICE, b)
    run = desk.store.get_run(first.run_id)
    assert run is not None
    assert run.cancel_requested_at is None
    assert [message.id for message in desk.store.list_queue(first.thread_id)] == [a, b]


def test_deleting_a_thread_removes_what_waits_and_stops_the_answer(site: MakeSite) -> None:
    desk = site(["One."])
    first = busy(desk)
    message_id = desk.wait("two", first.thread_id).message_id
    threads.delete(ALICE, first.thread_id)
    run = desk.store.get_run(first.run_id)
    assert run is not None
    assert run.status == "cancelled"
    with pytest.raises(NotFound):
        queue.remove(ALICE, message_id)
    assert desk.store.get_run(message_id) is None


# ---- stores without a queue, keys -----------------------------------------------------------------------------------


class NoQueue(OrmStore):
    capabilities = OrmStore.capabilities - {"queue"}


def test_a_store_without_the_capability_starts_every_send_at_once(site: MakeSite) -> None:
    desk = site(["One.", "Two."], STORE=f"{__name__}.NoQueue")
    first = busy(desk)
    for mode in ("auto", "queue", "interrupt"):
        sent = desk.submit("two", thread_id=first.thread_id, mode=mode)
        assert isinstance(sent, Admitted)
    assert isinstance(desk.submit("new", mode="queue"), Admitted)
    with pytest.raises(NotSupported):
        queue.read(ALICE, first.thread_id)
    with pytest.raises(NotSupported):
        queue.remove(ALICE, "nobody")
    assert not queue.is_enabled()
    assert threads.read(ALICE, first.thread_id)[1].to_json() == {"items": [], "paused": None}
    recover()


def test_a_repeated_key_of_a_queued_message_answers_its_queue_as_it_is_now(site: MakeSite) -> None:
    desk = site(["One.", "Two."])
    first = busy(desk)
    key: dict[str, Any] = {"idempotency_key": "k", "fingerprint": "f" * 64}
    waits = desk.wait("two", first.thread_id, **key)
    again = desk.wait("two", first.thread_id, **key)
    assert again == waits
    assert desk.waiting(first.thread_id) == ["two"]
    with pytest.raises(RunActive):
        chat(ALICE, Send(message="two", thread_id=first.thread_id, **key))
    desk.drive(first.run_id)
    started = desk.wait("two", first.thread_id, **key)
    assert (started.run_id, started.queue.items) == (waits.message_id, ())
    desk.drive(waits.message_id)
    removed = desk.submit(
        "x", thread_id=busy_again(desk, first.thread_id), idempotency_key="other", fingerprint="0" * 64
    )
    assert isinstance(removed, Queued)
    queue.remove(ALICE, removed.message_id)
    repeated = desk.submit("x", thread_id=first.thread_id, idempotency_key="other", fingerprint="0" * 64)
    assert isinstance(repeated, Queued)
    assert repeated.to_json()["position"] is None


def busy_again(desk: Site, thread_id: str) -> str:
    run = NewRun(id="again", thread_id=thread_id, actor=ALICE, input={})
    desk.store.create_run(run)
    desk.store.claim_active_run(thread_id, "again")
    return thread_id


# ---- a worker that was gone before it told --------------------------------------------------------------------------


def test_who_ends_the_stream_of_a_settled_run_tells_its_queue_too(site: MakeSite) -> None:
    """Of a completed run the journal says it; of a cancelled one, of which it says nothing, the queue as it is now."""
    desk = site(["One.", "Two."])
    completed = busy(desk)
    message_id = desk.wait("two", completed.thread_id).message_id
    desk.drive(completed.run_id)
    cancelled = busy(desk)
    desk.wait("two", cancelled.thread_id)
    cancel(ALICE, cancelled.run_id)
    for run_id, last in ((completed.run_id, ["queue", "end"]), (cancelled.run_id, ["queue", "cancelled", "end"])):
        told = queue_frame(desk, run_id)
        desk.store.remove_frames([run_id])
        end_stream(run_id)
        assert kinds(desk, run_id)[-len(last) :] == last
        assert queue_frame(desk, run_id) == told
        end_stream(run_id)
        assert kinds(desk, run_id).count("queue") == 1
    assert queue_frame(desk, completed.run_id)["started"]["runId"] == message_id
    assert queue_frame(desk, cancelled.run_id)["queue"]["paused"]["reason"] == "cancelled"


def test_a_journal_from_before_the_queue_is_told_without_it(site: MakeSite) -> None:
    desk = site(["One."])
    run = desk.turn("one")
    assert desk.steps(run.id)[-1].payload == {"outcome": "completed", "started": None}
    desk.store.remove_frames([run.id])
    end_stream(run.id)
    assert "queue" not in kinds(desk, run.id)


# ---- who has the conversation open ----------------------------------------------------------------------------------


def test_whoever_has_the_conversation_open_is_told_of_each_change(site: MakeSite) -> None:
    desk = site(["One.", "Two."])
    first = busy(desk)
    heard: list[str] = []

    def tell(thread_id: str, reason: str) -> None:
        assert thread_id == first.thread_id
        heard.append(reason)

    asyncio.run(notices.watch(first.thread_id, tell))
    try:
        waits = [desk.wait(text, first.thread_id).message_id for text in ("two", "three")]
        queue.edit(ALICE, waits[1], Edit(message="3"))
        queue.remove(ALICE, waits[1])
        assert heard == ["queue"] * 4
        heard.clear()
        desk.drive(first.run_id)
        assert sorted(heard) == ["queue", "run-settled", "run-started", "title"]
        heard.clear()
        assert desk.waiting(first.thread_id) == []
        queue.clear(ALICE, first.thread_id)
        assert heard == ["queue"]
    finally:
        notices.unwatch(first.thread_id, tell)
