"""A queue under everything at once: sends, ends, cancels, crashes and edits in any order, and what holds after each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from agent.db import close_threads
from agent.domain.actor import Actor
from agent.domain.commands import NewRun
from agent.domain.model_calls import ModelRequest
from agent.domain.queue import PauseReason, QueuedMessage
from agent.domain.runs import Run
from agent.domain.snapshots import Json
from agent.domain.states import OPEN_RUN, RunStatus
from agent.errors import Invalid, MessageGone, ModelError, NotAllowed, NotFound, RunActive
from agent.flows import queue, threads
from agent.flows.admission import Admitted, Queued, submit
from agent.flows.cancel import cancel
from agent.flows.queue import Edit
from agent.flows.recovery import recover
from agent.flows.starts import Send
from agent.providers.scripted import ScriptedProvider
from agent.registry import isolated_registry
from agent.store import OrmStore
from agent.store.base import AgentStore
from agent.testing import InMemoryStore, drive_run, held_runner

ALICE, BOB = Actor("alice"), Actor("bob")
FAILS = "fail"  # a message that says so ends its run as failed

places = st.integers(0, 3)
which = st.integers(0, 1)


class Killed(BaseException):
    """The process is gone in the middle of a unit."""


class Mortal:
    """A store whose process may die as it stores the run that a drain starts."""

    dies = False

    def create_run(self, run: NewRun, first_step: tuple[str, Json] | None = None) -> Run:
        if self.dies:
            self.dies = False
            raise Killed
        stored: Run = super().create_run(run, first_step)  # type: ignore[misc]
        return stored


class MortalMemory(Mortal, InMemoryStore):
    pass


class MortalOrm(Mortal, OrmStore):
    pass


def answer(request: ModelRequest) -> str:
    if request.messages[-1].content.startswith(FAILS):
        raise ModelError("away")
    return f"To {request.messages[-1].content}."


@dataclass
class Conversation:
    """A thread as the test believes it to be."""

    id: str
    waits: list[str] = field(default_factory=list)  # ids, in the order in which they have to start
    accepted: dict[str, str] = field(default_factory=dict)  # all that was ever sent: the text of each id
    removed: set[str] = field(default_factory=set)
    paused: bool = False  # before the action; lifted by it is told apart
    lifted: bool = False


class Typing(RuleBasedStateMachine):
    """Two threads of Alice's, which Bob tries to reach."""

    store: AgentStore  # set by the test

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0
        self.passed = timedelta()
        self.store.clock = lambda: timezone.now() + self.passed
        self.threads = [Conversation(self.store.create_thread(actor=ALICE).id) for _ in range(2)]
        for _ in range(3):  # from the first action on, one is answered and two wait
            self._send(self.threads[0], "auto", "m")
        self.vanish(0)

    def teardown(self) -> None:
        for one in self.threads:
            threads.delete(ALICE, one.id)

    # ---- actions ----

    @rule(at=which, mode=st.sampled_from(["auto", "auto", "queue", "interrupt"]), fails=st.sampled_from([0, 0, 0, 1]))
    def send(self, at: int, mode: str, fails: int) -> None:
        self._send(self._before(at), mode, FAILS if fails else "m")

    def _send(self, one: Conversation, mode: str, word: str) -> None:
        self.sent += 1
        text = f"{word} {self.sent}"
        busy = self._holder(one) is not None
        outcome = submit(ALICE, Send(message=text, thread_id=one.id, mode=mode))
        if isinstance(outcome, Queued):
            one.accepted[outcome.message_id] = text
            one.waits.insert(0 if busy and mode == "interrupt" else len(one.waits), outcome.message_id)
            one.lifted |= busy and mode == "interrupt"
            assert outcome.queue.items == tuple(self.store.list_queue(one.id))
        else:
            assert isinstance(outcome, Admitted)
            assert not busy
            assert mode != "queue"
            assert not one.waits or one.paused
            one.accepted[outcome.run_id] = text

    @rule(at=which)
    def regenerate(self, at: int) -> None:
        one = self._before(at)
        busy = self._holder(one) is not None
        asked = any(message.role == "user" for message in self._messages(one))
        refused = pytest.raises(RunActive if busy else Invalid) if busy or not asked else nullcontext()
        with refused:
            submit(ALICE, Send(thread_id=one.id, regenerate=True))

    @rule(at=which)
    def work(self, at: int) -> None:
        """A worker drives the answer to its end."""
        one = self._before(at)
        run = self._holder(one)
        if run is None or self._is_held(run):
            return
        head = self._head(one)
        ended = drive_run(run.id)
        assert ended.status not in OPEN_RUN
        self._check_pause(one, ended, head)

    @rule(at=which)
    def vanish(self, at: int) -> None:
        """A worker takes the answer up and is never heard of again."""
        run = self._holder(self._before(at))
        if run is not None and not self._is_held(run):
            self.store.claim_run(run.id, "gone", 60)

    @rule(at=which)
    def die_in_the_drain(self, at: int) -> None:
        """The process that ends an answer dies as it starts the next message: nothing of it has happened."""
        one = self._before(at)
        run = self._holder(one)
        if run is None or self._is_held(run) or not one.waits or one.paused:
            return
        if one.accepted.get(run.id, FAILS).startswith(FAILS) or run.cancel_requested_at is not None:
            return  # it would start nothing
        waiting = self.store.list_queue(one.id)
        self.store.dies = True  # type: ignore[attr-defined]
        with pytest.raises((Killed, asyncio.CancelledError, BaseExceptionGroup)):
            drive_run(run.id)
        assert self.store.list_queue(one.id) == waiting
        assert self.store.active_run_for_thread(one.id) == run.id

    @rule()
    def recover(self) -> None:
        """Time passes, and recovery looks after what was lost."""
        self._before(0), self._before(1)
        self.passed += timedelta(seconds=61)
        recover()

    @rule(at=which)
    def stop(self, at: int) -> None:
        one = self._before(at)
        run = self._holder(one)
        if run is None:
            return
        head = self._head(one)
        with pytest.raises(NotAllowed):
            cancel(BOB, run.id)
        assert cancel(ALICE, run.id)
        ended = self.store.get_run(run.id)
        if ended is not None and ended.status == RunStatus.CANCELLED:
            self._check_pause(one, ended, head)

    @rule(at=which, place=places, to=places, text=st.sampled_from(["m", FAILS]))
    def edit(self, at: int, place: int, to: int, text: str) -> None:
        one = self._before(at)
        message_id = self._waiting(one, place)
        if message_id is None:
            return
        self._only_alice(lambda who: queue.edit(who, message_id, Edit(message="x")), one)
        self.sent += 1
        one.accepted[message_id] = f"{text} {self.sent}"
        state = queue.edit(ALICE, message_id, Edit(message=one.accepted[message_id], position=to))
        one.waits.remove(message_id)
        one.waits.insert(to, message_id)
        assert [item.id for item in state.items] == one.waits

    @rule(at=which, place=places)
    def remove(self, at: int, place: int) -> None:
        one = self._before(at)
        message_id = self._waiting(one, place)
        if message_id is None:
            return
        self._only_alice(lambda who: queue.remove(who, message_id), one)
        queue.remove(ALICE, message_id)
        one.waits.remove(message_id)
        one.removed.add(message_id)
        with pytest.raises(NotFound):
            queue.remove(ALICE, message_id)

    @rule(at=which, place=places)
    def go_first(self, at: int, place: int) -> None:
        one = self._before(at)
        message_id = self._waiting(one, place)
        if message_id is None:
            return
        self._only_alice(lambda who: queue.interrupt(who, message_id), one)
        busy = self._holder(one) is not None
        moved = queue.interrupt(ALICE, message_id)
        one.waits.remove(message_id)
        one.waits.insert(0, message_id)
        one.lifted = True
        assert moved.interrupting is busy
        assert moved.run_id in {None, message_id}
        assert moved.run_id == message_id or busy
        assert self.store.queue_pause(one.id) is None

    @precondition(lambda self: any(one.waits for one in self.threads))
    @rule(at=which)
    def clear(self, at: int) -> None:
        one = self._before(at)
        self._only_alice(lambda who: queue.clear(who, one.id), one)
        assert queue.clear(ALICE, one.id).items == ()
        one.removed.update(one.waits)
        one.waits.clear()
        one.lifted = True

    @rule(at=which)
    def resume(self, at: int) -> None:
        one = self._before(at)
        self._only_alice(lambda who: queue.resume(who, one.id), one)
        busy, first = self._holder(one) is not None, self._waiting(one, 0)
        moved = queue.resume(ALICE, one.id)
        one.lifted = True
        assert moved.run_id == (None if busy else first)
        assert self.store.queue_pause(one.id) is None

    @rule(at=which)
    def look(self, at: int) -> None:
        one = self._before(at)
        detail, state = threads.read(ALICE, one.id)
        assert [item.id for item in state.items] == one.waits
        assert detail.summary.active_run_id == self.store.active_run_for_thread(one.id)

    @rule(at=which, place=places)
    def too_late(self, at: int, place: int) -> None:
        """What started is gone for every change."""
        one = self._before(at)
        started = [key for key in one.accepted if self.store.get_run(key) is not None]
        for message_id in started[place : place + 1]:
            with pytest.raises(MessageGone):
                queue.remove(ALICE, message_id)
            with pytest.raises(MessageGone):
                queue.interrupt(ALICE, message_id)

    # ---- what holds after each of them ----

    @invariant()
    def messages_start_in_order_or_wait(self) -> None:
        for one in self.threads:
            actual = [message.id for message in self.store.list_queue(one.id)]
            started = one.waits[: len(one.waits) - len(actual)]
            assert one.waits == [*started, *actual], "FIFO, but for those that interrupt"
            assert not (started and one.paused and not one.lifted), "a pause holds the queue"
            one.waits = actual

    @invariant()
    def no_message_is_lost_and_none_runs_twice(self) -> None:
        for one in self.threads:
            said = [message.content for message in self._messages(one) if message.role == "user"]
            for message_id, text in one.accepted.items():
                run = self.store.get_run(message_id)
                places = [message_id in one.waits, message_id in one.removed, run is not None]
                assert sum(places) == 1, f"{text}: waits, removed, started = {places}"
                assert said.count(text) == (run is not None)

    @invariant()
    def a_thread_has_one_holder_at_most(self) -> None:
        for one in self.threads:
            holder = self.store.active_run_for_thread(one.id)
            known = [self.store.get_run(key) for key in one.accepted]
            still = {run.id for run in known if run is not None and run.status in OPEN_RUN}
            assert len(still) <= 1
            assert still <= {holder}
            if holder is not None:
                run = self.store.get_run(holder)
                assert run is not None
                assert run.status in OPEN_RUN

    @invariant()
    def what_waits_for_an_idle_thread_is_held_by_a_pause(self) -> None:
        for one in self.threads:
            if self.store.active_run_for_thread(one.id) is None and self.store.list_queue(one.id):
                assert self.store.queue_pause(one.id) is not None

    # ---- how the test looks at it ----

    def _before(self, at: int) -> Conversation:
        one = self.threads[at]
        one.paused, one.lifted = self.store.queue_pause(one.id) is not None, False
        return one

    def _holder(self, one: Conversation) -> Run | None:
        run_id = self.store.active_run_for_thread(one.id)
        return None if run_id is None else self.store.get_run(run_id)

    def _is_held(self, run: Run) -> bool:
        """Whether a worker that vanished still has the lease."""
        return run.lease_expires_at is not None and run.lease_expires_at > self.store.clock()

    def _head(self, one: Conversation) -> QueuedMessage | None:
        waiting = self.store.list_queue(one.id)
        return waiting[0] if waiting else None

    def _waiting(self, one: Conversation, place: int) -> str | None:
        return one.waits[place] if place < len(one.waits) else None

    def _messages(self, one: Conversation) -> Any:
        detail = self.store.get_thread(one.id)
        return detail.messages if detail else ()

    def _only_alice(self, act: Callable[[Actor], object], one: Conversation) -> None:
        before = self.store.list_queue(one.id), self.store.queue_pause(one.id)
        with pytest.raises(NotAllowed):
            act(BOB)
        assert (self.store.list_queue(one.id), self.store.queue_pause(one.id)) == before

    def _check_pause(self, one: Conversation, ended: Run, head: QueuedMessage | None) -> None:
        """The fourth step of the drain's table."""
        pause = self.store.queue_pause(one.id)
        if one.paused or head is None:
            assert (pause is not None) is one.paused
        elif ended.status == RunStatus.FAILED:
            assert pause is not None
            assert pause.reason == PauseReason.RUN_FAILED
        elif ended.status == RunStatus.CANCELLED and not head.interrupt:
            assert pause is not None
            assert pause.reason == PauseReason.CANCELLED
        else:
            assert pause is None
            assert self.store.active_run_for_thread(one.id) == head.id


@pytest.fixture(params=[pytest.param("memory", marks=pytest.mark.once), "database"])
def stage(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[tuple[AgentStore, int, int]]:
    """A store with its runner, how many examples, and how many actions each."""
    in_memory = request.param == "memory"
    store: AgentStore = MortalMemory() if in_memory else MortalOrm()
    own: dict[str, Any] = {"STORE": store, "SINK": "memory" if in_memory else "database", "MODEL_RETRIES": 0}
    own["PROVIDERS"] = {"scripted": ScriptedProvider(answer)}
    with isolated_registry(), override_settings(AGENT=own), held_runner():
        yield (store, 60, 40) if in_memory else (store, 5, 30)
    close_threads()


def test_whatever_happens_in_whatever_order_the_queue_keeps_its_promises(stage: tuple[AgentStore, int, int]) -> None:
    store, examples, actions = stage
    machine = type("Staged", (Typing,), {"store": store})
    sizes = settings(
        max_examples=examples, stateful_step_count=actions, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=sizes)
