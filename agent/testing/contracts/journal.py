"""The cases of RUN_CONTRACT about the journal (spec 02 §5.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from agent.domain.commands import AppendMessage, Effect, NewRun
from agent.domain.runs import RunLease, Step
from agent.errors import LeaseLost
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import ANA, claimed, completed, new_run, new_thread, running, stored_run
from agent.testing.contracts.runs import RUN_CONTRACT
from agent.testing.contracts.store import StoreSubject, case


class _Crash(BaseException):
    """What no `except Exception` sees."""


def step(position: int, payload: object = None, name: str = "a") -> Step:
    return Step(position=position, name=name, payload=payload)


def names(store: AgentStore, run_id: str = "run-1") -> list[tuple[int, str]]:
    return [(recorded.position, recorded.name) for recorded in store.steps(run_id)]


def lost(write: Callable[[], object]) -> bool:
    try:
        write()
    except LeaseLost:
        return True
    return False


def _records(store: AgentStore, lease: RunLease, steps: Sequence[Step]) -> bool:
    return not lost(partial(store.record_steps, lease, steps))


@case(RUN_CONTRACT, "03 a step's position is taken once, and with a taken one nothing is recorded")
def _position(subject: StoreSubject) -> None:
    store = subject.store
    lease = running(store)
    store.record_step(lease, step(0, {"z": 1, "a": [1, "\x00"]}))
    expect(lost(lambda: store.record_step(lease, step(0, name="b"))), "the same position")
    expect(not _records(store, lease, [step(1), step(0)]), "a batch with a taken one")
    same(names(store), [(0, "a")], "the journal")
    expect(_records(store, lease, [step(1), step(2)]), "a batch")
    same(names(store), [(0, "a"), (1, "a"), (2, "a")], "the journal by position")
    [first, *_] = store.steps("run-1")
    expect(first.payload == {"z": 1, "a": [1, "\x00"]}, "the payload")
    opened = store.open_run("run-1")
    same(opened and opened.steps, store.steps("run-1"), "open_run's journal")
    same(opened and opened.run, stored_run(store), "open_run's run")
    same([store.open_run("nobody"), store.steps("nobody")], [None, []], "an unknown run")


@case(RUN_CONTRACT, "03b of racing records of one position one is recorded", commits=True)
def _racing_steps(subject: StoreSubject) -> None:
    store = subject.store
    lease = running(store)
    recorded = subject.parallel([lambda: _records(store, lease, [step(0)])] * 4)
    same((sum(recorded), names(store)), (1, [(0, "a")]), "records, and the journal")


@case(RUN_CONTRACT, "03c the first step is written with the run, and only then")
def _first_step(subject: StoreSubject) -> None:
    store = subject.store
    run = NewRun(id="run-1", thread_id="t", actor=ANA, input={})
    made = [store.create_run(run, ("persist:user", {"id": "m"})) for _ in range(2)]
    same(made[0], made[1], "the same id again")
    same(store.steps("run-1"), [step(0, {"id": "m"}, "persist:user")], "position 0")


@case(RUN_CONTRACT, "04 an effect is reported as a repeat only for the same marker")
def _effect(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    lease = running(store)
    begin = store.begin_effect
    same(begin(lease, Effect(position=1, name="llm:0")), False, "the first attempt")
    marked = stored_run(store)
    same((marked.effect_position, marked.effect_name), (1, "llm:0"), "the marker")
    clock.advance(60)
    second = claimed(store, owner="w2")
    expect(lost(lambda: begin(lease, Effect(position=1, name="llm:0"))), "by the old holder")
    same(begin(second, Effect(position=1, name="llm:0")), True, "by the next attempt")
    same(begin(second, Effect(position=2, name="llm:0")), False, "another position")
    same(begin(second, Effect(position=2, name="tool:x")), False, "another name")
    expect(store.record_steps(second, [step(1)], effect=Effect(position=2, name="llm:1")) is False, "with a step")
    same(begin(second, Effect(position=2, name="llm:1")), True, "set with the step before it")
    store.record_step(second, step(2))
    same(stored_run(store).effect_position, None, "a record clears it")
    same(begin(second, Effect(position=2, name="llm:1")), False, "after its record")


@case(RUN_CONTRACT, "04b recording a step answers whether a cancel was asked for")
def _cancel_seen(subject: StoreSubject) -> None:
    store = subject.store
    lease = running(store)
    seen = [store.record_steps(lease, [step(0)])]
    store.request_cancel("run-1")
    seen.append(store.record_steps(lease, [step(1)]))
    same(seen, [False, True], "answers")


@case(RUN_CONTRACT, "09 a crash inside a unit of work leaves neither the rows nor the step", commits=True)
def _crash(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    lease = running(store, thread_id=thread_id)
    before = store.open_run("run-1")

    def crashes() -> None:
        with store.atomic():
            store.append_message(AppendMessage(thread_id=thread_id, role="user", content="lost"))
            store.record_step(lease, step(0))
            raise _Crash

    try:
        crashes()
    except _Crash:
        detail = store.get_thread(thread_id)
        same((detail and detail.messages, store.open_run("run-1")), ((), before), "rows and journal")
        return
    raise ContractMismatch("the crash was swallowed")


@case(RUN_CONTRACT, "09b a settlement records its steps with it, or neither")
def _settle_with_steps(subject: StoreSubject) -> None:
    store = subject.store
    lease = running(store)
    store.record_step(lease, step(0))
    expect(lost(lambda: store.record_run_end("run-1", completed(), lease=lease, steps=[step(0)])), "a taken position")
    same(stored_run(store).status, "running", "the run")
    expect(store.record_run_end("run-1", completed(), lease=lease, steps=[step(1, name="persist:run:end")]), "the end")
    same((stored_run(store).status, names(store)), ("completed", [(0, "a"), (1, "persist:run:end")]), "both")
    expect(lost(lambda: store.record_step(lease, step(2))), "nothing follows")


@case(RUN_CONTRACT, "10 journals of runs that were settled before a moment are removed, the runs stay")
def _purged(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    for number in range(4):
        new_run(store, f"run-{number}")
        lease = claimed(store, f"run-{number}")
        store.record_steps(lease, [step(position) for position in range(3)])
        if number < 3:
            store.record_run_end(f"run-{number}", completed(), lease=lease)
        clock.advance(1)
    before = clock.now - timedelta(seconds=2)  # when the third was settled
    same([store.purge_journals(before, 0), store.purge_journals(before, 1)], [0, 1], "at most so many")
    same([store.purge_journals(before), store.purge_journals(before)], [1, 0], "the rest, once")
    same([len(store.steps(f"run-{number}")) for number in range(4)], [0, 0, 3, 3], "the journals")
    same(store.get_run("run-0") is not None, True, "the run")
