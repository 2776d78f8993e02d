"""RUN_CONTRACT (spec 02 §5.5), the life of a run. The journal's cases are in `journal.py`, in the same list."""

from __future__ import annotations

from agent.domain.actor import Owner
from agent.domain.commands import RunEnd, RunStart
from agent.errors import IllegalMove
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import (
    claimed,
    completed,
    new_run,
    new_thread,
    running,
    stored_run,
)
from agent.testing.contracts.store import START, StoreCase, StoreSubject, case

RUN_CONTRACT: list[StoreCase] = []


@case(RUN_CONTRACT, "06 a run settles once, and a second settlement changes nothing")
def _settle(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    lease = running(store)
    clock.advance(1.5)
    end = RunEnd(status="failed", error_code="run_failed", error_message="boom\x00")
    expect(store.record_run_end("run-1", end, lease=lease), "the first")
    run = stored_run(store)
    seen = (run.status, run.error_code, run.error_message, run.settled_at, run.duration_ms)
    same(seen, ("failed", "run_failed", "boom\ufffd", clock.now, 1500), "the row")
    same((run.lease_owner, run.lease_expires_at, run.effect_position), (None, None, None), "nobody works on it")
    clock.advance(1)
    same(
        [store.record_run_end("run-1", completed()), store.record_run_end("nobody", completed())], [False] * 2, "later"
    )
    same(stored_run(store), run, "the row after it")
    same([store.claim_run("run-1", "w2", 60), store.wake_run("run-1")], [None, False], "nobody takes it up")
    expect(
        not store.record_run_start("run-1", RunStart(prompt_hash="h", agent_name=None, model_id=None, persona=None)), ""
    )


@case(RUN_CONTRACT, "06b a run settled before any claim started when it was settled; a given duration stands")
def _never_started(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    new_run(store)
    clock.advance(9)
    store.record_run_end("run-1", RunEnd(status="completed", duration_ms=7))
    run = stored_run(store)
    same((run.started_at, run.settled_at, run.duration_ms), (clock.now, clock.now, 7), "times")
    try:
        store.record_run_end("run-1", RunEnd(status="waiting"))
    except IllegalMove:
        return
    raise ContractMismatch("a run ended as waiting")


@case(RUN_CONTRACT, "07 cancelled and completed rows carry no error")
def _no_error(subject: StoreSubject) -> None:
    store = subject.store
    for status in ("cancelled", "completed"):
        new_run(store, status)
        store.record_run_end(status, RunEnd(status=status, error_code="x", error_message="y"))
        run = stored_run(store, status)
        same((run.status, run.error_code, run.error_message), (status, None, None), status)


@case(RUN_CONTRACT, "08 a finished run has no active owner, and still a scope")
def _owner(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store, held_by="run-1")
    new_run(store, "run-1", thread_id=thread_id)
    same(store.owner_of_active_run("run-1"), Owner("ana", "acme"), "while it holds the thread")
    store.record_run_end("run-1", RunEnd(status="failed", error_code="run_failed"))
    store.release_active_run(thread_id, "run-1")
    same(store.owner_of_active_run("run-1"), None, "after it")
    scope = {
        "owner": Owner("ana", "acme"),
        "thread_id": thread_id,
        "status": "failed",
        "stream_run_id": "run-1",
        "attempt": 0,
        "error_code": "run_failed",
    }
    same(store.run_scope("run-1"), scope, "run_scope")
    same(store.run_scope("nobody"), None, "an unknown run")


@case(RUN_CONTRACT, "10 a cancel keeps its first time, and says who has to settle")
def _cancel(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    new_run(store)
    same([store.request_cancel("nobody"), store.request_cancel("run-1")], ["unknown", "settle_now"], "queued")
    lease = claimed(store)
    clock.advance(5)
    same(store.request_cancel("run-1"), "requested", "running")
    same(stored_run(store).cancel_requested_at, START, "the first time")
    expect(not store.record_run_end("run-1", completed(), lease=lease), "it does not complete any more")
    expect(store.record_run_end("run-1", RunEnd(status="cancelled"), lease=lease), "it is cancelled")
    same(store.request_cancel("run-1"), "over", "settled")


@case(RUN_CONTRACT, "11 what a run is known to be reads back")
def _start(subject: StoreSubject) -> None:
    store = subject.store
    new_run(store, parent_run_id="parent")
    start = RunStart(prompt_hash="a" * 64, agent_name="support", model_id="fast", persona="kind")
    expect(store.record_run_start("run-1", start), "the write")
    run = stored_run(store)
    same((run.prompt_hash, run.agent_name, run.model_id, run.persona), ("a" * 64, "support", "fast", "kind"), "columns")
    same(run.parent_run_id, "parent", "what is not given stays")
    other = RunStart(prompt_hash="b" * 64, agent_name=None, model_id=None, persona=None, parent_run_id="p2")
    store.record_steps(claimed(store), [], start=other)
    run = stored_run(store)
    same((run.prompt_hash, run.agent_name, run.parent_run_id), ("b" * 64, None, "p2"), "with steps")
    store.bump_run_retries("run-1")
    store.bump_run_retries("run-1", 2)
    store.bump_run_retries("nobody")
    same(stored_run(store).retries, 3, "retries")


@case(RUN_CONTRACT, "15 lost runs are found, oldest first: a lapsed lease, or queued and not heard of")
def _lost(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    for run_id in ("lapsed", "never", "lately", "long ago", "alive"):
        new_run(store, run_id)
        clock.advance(1)
    claimed(store, "lapsed", seconds=60)
    store.mark_dispatched(["long ago", "nobody"])
    clock.advance(60)
    claimed(store, "alive", seconds=60)
    store.mark_dispatched(["lately"])

    def found(limit: int = 10, queued_for: int = 60) -> list[str]:
        return [run.id for run in store.lapsed_runs(clock.now, limit, queued_for)]

    same([found(), found(limit=2)], [["lapsed", "never", "long ago"], ["lapsed", "never"]], "found")
    same(found(queued_for=61), ["lapsed", "never"], "with more patience")
    same(found(queued_for=0), ["lapsed", "never", "lately", "long ago"], "at the start of a process")
    store.mark_dispatched(["lapsed"])
    same(found(), ["never", "long ago"], "a lapsed one that was just handed over again")
    same(found(queued_for=0), ["lapsed", "never", "lately", "long ago"], "and at the start of a process")
    clock.advance(59)
    same(found(), ["never", "long ago"], "while somebody may still take it up")
    clock.advance(1)
    same(found(), ["lapsed", "never", "lately", "long ago", "alive"], "handed over in vain")
    store.mark_dispatched([])


@case(RUN_CONTRACT, "17 how far several runs are is read together")
def _states(subject: StoreSubject) -> None:
    store = subject.store
    for run_id in ("open", "failed"):
        new_run(store, run_id)
    end = RunEnd(status="failed", error_code="run_failed", error_message="boom")
    store.record_run_end("failed", end)
    states = store.run_states(["open", "failed", "nobody"])
    same(sorted(states), ["failed", "open"], "who is known")
    same([states[each].status for each in ("open", "failed")], ["queued", "failed"], "statuses")
    same([states[each].error_code for each in ("open", "failed")], [None, "run_failed"], "codes")
    same([states[each].settled_at for each in ("open", "failed")], [None, subject.clock.now], "settled")
    same(store.run_states([]), {}, "nobody asked for")


@case(RUN_CONTRACT, "18 the base of frame numbers only rises, and only while the run is not over", needs=("frames",))
def _frame_base(subject: StoreSubject) -> None:
    store = subject.store
    for run_id in ("open", "over"):
        new_run(store, run_id)
    store.record_run_end("over", completed())
    for run_id in ("open", "over", "nobody"):
        for seq in (7, 3):
            store.raise_frame_base(run_id, seq)
    states = store.run_states(["open", "over"])
    same([states[each].frame_base for each in ("open", "over")], [7, 0], "bases")
    same(store.append_frame("open", "a"), 8, "the next number")
