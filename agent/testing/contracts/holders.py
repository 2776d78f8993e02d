"""HOLDER_CONTRACT (spec 02 §5.6 case 8, for stores without a queue too): one run holds a thread."""

from __future__ import annotations

from functools import partial

from agent.testing.contracts.base import expect, same
from agent.testing.contracts.rows import ANA, new_thread
from agent.testing.contracts.store import StoreCase, StoreSubject, case

HOLDER_CONTRACT: list[StoreCase] = []


@case(HOLDER_CONTRACT, "01 a free thread is claimed, by the same run again, and by nobody else")
def _claim(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    claims = [store.claim_active_run(thread_id, run_id) for run_id in ("r1", "r1", "r2")]
    same(claims, [True, True, False], "claims")
    same(store.active_run_for_thread(thread_id), "r1", "the holder")
    expect(not store.claim_active_run("nobody", "r1"), "an unknown thread")


@case(HOLDER_CONTRACT, "02 a hand-over makes the former holder's release do nothing")
def _replace(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store, held_by="r1")
    expect(not store.claim_active_run(thread_id, "r3", replacing="r2"), "replacing another")
    expect(store.claim_active_run(thread_id, "r2", replacing="r1"), "replacing the holder")
    expect(not store.release_active_run(thread_id, "r1"), "the former holder lets go")
    same(store.active_run_for_thread(thread_id), "r2", "the holder")
    expect(store.release_active_run(thread_id, "r2"), "the holder lets go")
    expect(store.claim_active_run(thread_id, "r4", replacing="gone"), "a free thread, whatever it replaces")


@case(HOLDER_CONTRACT, "03 a release stores the title whoever holds the thread, and frees a deleted one")
def _title(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    thread_id = new_thread(store, held_by="r1")
    clock.advance(1)
    expect(not store.release_active_run(thread_id, "r2", title="Order 1042"), "not the holder")
    summary = store.list_threads(ANA)[0]
    same((summary.title, summary.updated_at, summary.active_run_id), ("Order 1042", clock.now, "r1"), "the thread")
    store.soft_delete_thread(thread_id)
    expect(store.release_active_run(thread_id, "r1"), "of a deleted thread")
    expect(not store.release_active_run("nobody", "r1", title="x"), "an unknown thread")


@case(HOLDER_CONTRACT, "04 of racing claims one wins", commits=True)
def _race(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    runs = [f"r{number}" for number in range(8)]
    won = subject.parallel([partial(store.claim_active_run, thread_id, run_id) for run_id in runs])
    same(sum(won), 1, "winners")
    same(store.active_run_for_thread(thread_id), runs[won.index(True)], "the holder")


@case(HOLDER_CONTRACT, "05 the owner of an active run is its thread's, and a finished run has none", needs=("runs",))
def _owner(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store, held_by="r1")
    owner = store.owner_of_active_run("r1")
    same(owner and (owner.ref, owner.tenant_ref), ("ana", "acme"), "while it holds the thread")
    store.set_active_run(thread_id, None)
    same(store.owner_of_active_run("r1"), None, "after it")
