"""The cases of RUN_CONTRACT about leases, parks and hand-overs (spec 02 §5.5)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from agent.domain.commands import Effect, ToolCallPatch, ToolDecision
from agent.domain.runs import RunLease, Step
from agent.errors import LeaseLost
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import (
    ANA,
    answer,
    claimed,
    completed,
    new_call,
    new_run,
    new_thread,
    running,
    stored_run,
    waiting_call,
)
from agent.testing.contracts.runs import RUN_CONTRACT
from agent.testing.contracts.store import PATIENCE, START, StoreSubject, case

RACES = 200


def loses(store: AgentStore, lease: RunLease) -> None:
    """A lease that is lost writes nothing."""
    before = store.open_run(lease.run_id)
    try:
        store.record_step(lease, Step(position=99, name="late", payload=None))
    except LeaseLost:
        pass
    else:
        raise ContractMismatch("a step was recorded under a lost lease")
    kept = [store.renew_run(lease), store.park_run(lease, []), store.release_run(lease)]
    kept.append(store.record_run_end(lease.run_id, completed(), lease=lease))
    same(kept, [False] * 4, "renew, park, release and end under a lost lease")
    same(store.open_run(lease.run_id), before, "the run")


@case(RUN_CONTRACT, "01 of eight racing claims one gets the lease", commits=True)
def _racing_claims(subject: StoreSubject) -> None:
    store = subject.store
    new_run(store)
    leases = subject.parallel([partial(store.claim_run, "run-1", f"w{n}", 60) for n in range(8)])
    owners = [lease.owner for lease in leases if lease is not None]
    run = stored_run(store)
    same((owners, run.attempt), ([run.lease_owner], 1), "the winners, and the run")


@case(RUN_CONTRACT, "01b a claim takes a queued run, once, and says until when")
def _claim(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    new_run(store)
    clock.advance(5)
    lease = claimed(store, seconds=30)
    run = stored_run(store)
    same((run.status, run.attempt, run.started_at), ("running", 1, clock.now), "the run")
    same(run.lease_expires_at, clock.now + timedelta(seconds=30), "its lease")
    same((lease.attempt, lease.claimed_at, lease.active_ms), (1, clock.now, 0), "the answer")
    same([store.claim_run("run-1", "w2", 60), store.claim_run("nobody", "w2", 60)], [None, None], "again, and nobody")
    clock.advance(3)
    store.release_run(lease)
    clock.advance(1)
    same(claimed(store).started_at, START + timedelta(seconds=5), "the first start stays")


@case(RUN_CONTRACT, "02 a lapsed lease is claimed with the next attempt, and its old holder writes nothing more")
def _lapsed(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    old = running(store)
    clock.advance(59.999)
    same(store.claim_run("run-1", "w2", 60), None, "before it lapses")
    clock.advance(0.001)
    lease = claimed(store, owner="w1")
    same((lease.attempt, old.attempt), (2, 1), "attempts")
    loses(store, old)
    expect(store.renew_run(lease), "the new holder")


@case(RUN_CONTRACT, "02b a renewal extends the lease, also one that lapsed and nobody took")
def _renew(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    lease = running(store)
    for seconds in (20, 90):
        clock.advance(seconds)
        expect(store.renew_run(lease), f"after {seconds} s")
        same(stored_run(store).lease_expires_at, clock.now + timedelta(seconds=60), "its end")
    same(stored_run(store).active_ms, 110_000, "time under the lease")


@case(RUN_CONTRACT, "05 a park is refused when a decision or a settled child is already there")
def _park(subject: StoreSubject) -> None:
    store = subject.store
    message = answer(store, new_thread(store), run_id="run-1")
    lease = running(store)
    for call_id in ("open", "decided", "failed"):
        waiting_call(store, message, call_id)
    store.decide_tool_call("decided", ToolDecision(decision="approved", actor=ANA))
    store.update_tool_call("failed", ToolCallPatch(status="failed"))
    new_call(store, message, "delegated")
    new_run(store, "child", parent_run_id="run-1", parent_call_id="delegated")
    parks = [store.park_run(lease, calls) for calls in (["open", "decided"], ["failed"])]
    same(parks, [False, False], "a decision, a settled call")
    expect(store.park_run(lease, ["open", "delegated"]), "an open call and an open child")
    run = stored_run(store)
    same((run.status, run.lease_owner, run.lease_expires_at), ("waiting", None, None), "parked")
    store.record_run_end("child", completed())
    store.wake_run("run-1")
    expect(not store.park_run(claimed(store), ["delegated"]), "a settled child")
    same(stored_run(store).status, "running", "goes on")


@case(RUN_CONTRACT, "05c the children of a run that are not over are found, oldest first")
def _children(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    new_run(store)
    for child in ("second", "first", "over"):
        new_run(store, child, parent_run_id="run-1", parent_call_id=f"call of {child}")
        clock.advance(1)
    new_run(store, "stranger", parent_run_id="run-2")
    store.record_run_end("over", completed())
    same([run.id for run in store.open_children("run-1")], ["second", "first"], "the children")
    same([run.parent_call_id for run in store.open_children("run-1")][:1], ["call of second"], "with their calls")
    same((store.lock_run("run-1"), store.lock_run("nobody")), (True, False), "a lock")


@case(RUN_CONTRACT, "05b a park is refused when a cancel was asked for: nobody else would settle the run")
def _park_cancelled(subject: StoreSubject) -> None:
    store = subject.store
    lease = running(store)
    same(store.request_cancel("run-1"), "requested", "the answer")
    expect(not store.park_run(lease, []), "the park")
    same(stored_run(store).status, "running", "the run")


@case(RUN_CONTRACT, "05c a run is woken once; time asleep is not active time")
def _wake(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    lease = running(store)
    same(store.wake_run("run-1"), False, "a running one")
    clock.advance(2)
    store.park_run(lease, [])
    clock.advance(100)
    same([store.wake_run("run-1"), store.wake_run("run-1"), store.wake_run("nobody")], [True, False, False], "woken")
    again = claimed(store)
    clock.advance(3.0005)
    store.record_run_end("run-1", completed(), lease=again)
    run = stored_run(store)
    same((run.duration_ms, run.active_ms, run.attempt, run.recoveries), (105_000, 5_000, 2, 0), "figures")


@case(RUN_CONTRACT, "12 recoveries rise at claims over a lapsed lease and fall with a step; other claims do not count")
def _recoveries(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    lease = running(store)
    seen = []
    for _ in range(2):
        clock.advance(60)
        lease = claimed(store)
        seen.append(stored_run(store).recoveries)
    store.record_step(lease, Step(position=0, name="a", payload=1))
    seen.append(stored_run(store).recoveries)
    store.release_run(lease)
    lease = claimed(store)
    store.park_run(lease, [])
    store.wake_run("run-1")
    seen += [stored_run(store).recoveries, claimed(store).attempt]
    same(seen, [1, 2, 0, 0, 5], "recoveries, and the attempts in the end")


@case(RUN_CONTRACT, "12b an attempt marker alone is no progress: only a step lets recoveries fall")
def _marker_is_no_progress(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    running(store)
    for recoveries in (1, 2):
        clock.advance(60)
        store.record_steps(claimed(store), [], effect=Effect(position=1, name="llm:0"))
        same(stored_run(store).recoveries, recoveries, "recoveries")


@case(RUN_CONTRACT, "12c the leases of workers that are gone lapse at once, those of others stay")
def _gone_workers(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    for run_id, owner in (("run-1", "gone"), ("run-2", "here"), ("run-3", "gone")):
        new_run(store, run_id)
        claimed(store, run_id, owner=owner)
    store.park_run(running(store, "run-4"), [])
    new_run(store, "run-5")
    same(store.lease_owners(), ["gone", "here"], "who works")
    same([store.lapse_leases(owners) for owners in (["gone", "nobody"], ["gone"], [])], [2, 0, 0], "leases that lapsed")
    same([run.id for run in store.lapsed_runs(clock.now, 10)], ["run-1", "run-3", "run-5"], "lost")
    same(claimed(store, "run-3", owner="next").attempt, 2, "taken up")
    same(stored_run(store, "run-2").lease_expires_at, clock.now + timedelta(seconds=60), "the other one's lease")


@case(RUN_CONTRACT, "13 of a park and a decision at once, the run never waits with a decided call", commits=True)
def _park_race(subject: StoreSubject) -> None:
    store = subject.store
    message = answer(store, new_thread(store), run_id="run-1")
    races = [(f"race-{number}", f"call-{number}") for number in range(RACES)]
    leases = [running(store, run_id) for run_id, _ in races]
    for run_id, call_id in races:
        waiting_call(store, message, call_id, run_id=run_id)
    line = threading.Barrier(2)

    def park() -> list[bool]:
        return [_at(line, partial(store.park_run, lease, [race[1]])) for lease, race in zip(leases, races, strict=True)]

    def decide() -> list[bool]:
        return [_at(line, partial(_decided, store, call_id, run_id)) for run_id, call_id in races]

    parked, woken = subject.parallel([park, decide])
    same(woken, parked, "whoever parked is woken")
    waiting = [run_id for run_id, _ in races if stored_run(store, run_id).status == "waiting"]
    same(waiting, [], "runs that wait with a decided call")


def _at(line: threading.Barrier, move: Callable[[], bool]) -> bool:
    """Start together with the other side."""
    line.wait(PATIENCE)
    try:
        return move()
    except BaseException:
        line.abort()  # nobody comes to the next race
        raise


def _decided(store: AgentStore, call_id: str, run_id: str) -> bool:
    """A decision and its wake-up, in one unit of work; whether the run slept."""
    with store.atomic():
        store.decide_tool_call(call_id, ToolDecision(decision="approved", actor=ANA))
        return store.wake_run(run_id)


@case(RUN_CONTRACT, "14 a settlement under a lost lease answers False and changes nothing")
def _lost_settlement(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    old = running(store)
    clock.advance(60)
    claimed(store, owner="w2")
    before = store.open_run("run-1")
    steps = [Step(position=0, name="persist:run:end", payload={})]
    expect(not store.record_run_end("run-1", completed(), lease=old, steps=steps), "the settlement")
    same(store.open_run("run-1"), before, "the run and its journal")


@case(RUN_CONTRACT, "16 a released run is queued and found at once")
def _release(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    lease = running(store)
    store.mark_dispatched(["run-1"])
    clock.advance(2)
    same([store.release_run(lease), store.release_run(lease)], [True, False], "once")
    run = stored_run(store)
    same((run.status, run.lease_owner, run.dispatched_at, run.active_ms), ("queued", None, None, 2_000), "the row")
    same([lost.id for lost in store.lapsed_runs(clock.now, 10)], ["run-1"], "found")
