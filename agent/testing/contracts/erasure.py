"""ERASURE_CONTRACT (spec 01 §8): what somebody said goes, and nothing that is counted."""

from __future__ import annotations

from agent.domain.memories import SaveMemory, own_scope
from agent.testing.contracts import proposal_rows as proposals
from agent.testing.contracts.base import expect, same
from agent.testing.contracts.rows import ANA, BO, claimed, completed, new_run, new_thread, say, stored_run, usage
from agent.testing.contracts.store import StoreCase, StoreSubject, case

ERASURE_CONTRACT: list[StoreCase] = []


@case(ERASURE_CONTRACT, "01 a run or a proposal that is not over is open work of its owner alone")
def _open(subject: StoreSubject) -> None:
    store = subject.store
    new_run(store, "run-1")
    same([store.has_open_work(ref) for ref in ("ana", "bo")], [True, False], "a run")
    claimed(store, "run-1")
    store.record_run_end("run-1", completed())
    same(store.has_open_work("ana"), False, "a settled run")
    proposals.made(store, "p1", proposals.own_scope(store))
    same([store.has_open_work(ref) for ref in ("ana", "bo")], [True, False], "a proposal")


@case(ERASURE_CONTRACT, "02 a conversation is emptied and deleted, unless a run holds it")
def _thread(subject: StoreSubject) -> None:
    store = subject.store
    held, idle, others = new_thread(store, held_by="run-1"), new_thread(store), new_thread(store, BO)
    for thread_id in (held, idle, others):
        say(store, thread_id, "secret")
    same(store.threads_of("ana"), sorted([held, idle]), "whose")
    same(store.threads_of("ana", min(held, idle), 1), [max(held, idle)], "the second")
    same([store.erase_thread(each) for each in (held, idle, "nobody")], [False, True, False], "answers")
    scope = store.thread_scope(idle)
    expect(scope is not None and scope.deleted, "it is deleted")
    kept = store.get_thread(held), store.get_thread(others)
    same([thread and thread.messages[0].content for thread in kept], ["secret", "secret"], "others")
    expect(store.erase_thread(idle), "once more")


@case(ERASURE_CONTRACT, "03 a run keeps its figures, and its ledger every row")
def _runs(subject: StoreSubject) -> None:
    store = subject.store
    new_run(store, "run-1")
    lease = claimed(store, "run-1")
    store.append_frames("run-1", ["secret\n"])
    before = [store.record_usage(usage(run_id="run-1", step_key="llm:0"))]
    store.record_run_end("run-1", completed(), lease=lease)
    seen = stored_run(store)
    same(store.runs_of("ana"), ["run-1"], "whose")
    store.erase_runs(["run-1", "nobody"])
    run = stored_run(store)
    same((run.input, run.status, run.duration_ms, run.actor), ({}, seen.status, seen.duration_ms, seen.actor), "run")
    same((store.steps("run-1"), store.read_frames("run-1", 0)), ([], []), "journal and stream")
    same(store.usage_of_run("run-1"), before, "ledger")


@case(ERASURE_CONTRACT, "04 a proposal keeps who decided and how it ended, and no word")
def _proposals(subject: StoreSubject) -> None:
    store = subject.store
    scope = proposals.own_scope(store)
    before = proposals.settled(store, "p1", scope, input={"secret": 1})
    for key in store.proposals_of("ana"):
        expect(store.erase_proposal(key), "it is there")
    after = proposals.stored(store, "p1")
    same((after.asked.input, after.asked.confirmation), ({}, None), "what was asked")
    same(after.audit and after.audit.actor_ref, before.audit and before.audit.actor_ref, "who")
    same(after.execution and after.execution.status, "succeeded", "how")
    expect("secret" not in repr(after), "no word")
    same(store.erase_proposal("nobody"), False, "unknown")


@case(ERASURE_CONTRACT, "05 keys and memories of the person are gone, and those of others are not")
def _belongings(subject: StoreSubject) -> None:
    store = subject.store
    for ref in (ANA.ref, BO.ref):
        store.claim_idempotency_key(ref, "key", "f" * 64)
        store.upsert_memory(SaveMemory(scope=own_scope(ref), key="likes", text="secret", origin_author="agent"))
    same(store.erase_belongings("ana"), [], "no files")
    same([len(store.list_memories([own_scope(ref)])) for ref in (ANA.ref, BO.ref)], [0, 1], "memories")
    store.claim_idempotency_key(ANA.ref, "key", "e" * 64)
