"""PROPOSAL_OUTCOME_CONTRACT and PROPOSED_CALL_CONTRACT (spec 02 §5.8)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from agent.domain.clock import epoch_ms
from agent.domain.proposals import Proposal, ProposalScope
from agent.store.base import AgentStore
from agent.store.proposals import SettlesAndTells
from agent.testing.contracts.base import ContractMismatch, same
from agent.testing.contracts.decisions import decide as decide_call
from agent.testing.contracts.proposal_rows import (
    LEASE_MS,
    approved,
    asked,
    claimed,
    decide,
    failed,
    fence,
    made,
    needed,
    own_scope,
    settle,
    settled,
    stored,
    succeeded,
    telling,
)
from agent.testing.contracts.rows import ANA, called_message, new_call
from agent.testing.contracts.store import StoreCase, StoreSubject, case
from agent.testing.contracts.tool_calls import stored_call

PROPOSAL_OUTCOME_CONTRACT: list[StoreCase] = []
PROPOSED_CALL_CONTRACT: list[StoreCase] = []


def token_of(proposal: Proposal) -> str:
    if proposal.delivery is None or proposal.delivery.lease is None:
        raise ContractMismatch("nobody admits the outcome")
    return proposal.delivery.lease.token


def admitting(store: AgentStore, proposal_id: str = "p1") -> str:
    return token_of(needed(store.claim_outcome(proposal_id, LEASE_MS)))


def told(store: AgentStore, scope: ProposalScope) -> list[str]:
    detail = store.get_thread(scope.thread_id)
    return [message.content for message in detail.messages] if detail else []


@case(PROPOSAL_OUTCOME_CONTRACT, "01 each end but a replacement yields one due outcome")
def _due(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    scope = own_scope(store)
    settled(store, "succeeded", scope)
    needed(settle(store, claimed(store, "failed", scope), failed()))
    made(store, "rejected", scope)
    decide(store, "rejected", "rejected", scope, reason="Too much")
    made(store, "expired", scope, expires_at=epoch_ms(clock.now) + 1)
    approved(store, "queued", scope)
    made(store, "old", scope, replacement_key="k")
    clock.advance(1)
    store.expire_due_proposals(clock.now)
    store.create_proposal(asked("new", scope, replacement_key="k"), supersede=True)
    due = store.due_outcomes(clock.now)
    seen = sorted((one.id, one.outcome.id, one.outcome.status) for one in due if one.outcome)
    same(
        seen,
        sorted((each, f"{each}:outcome:1", each) for each in ("succeeded", "failed", "rejected", "expired")),
        "due",
    )
    reasons = [one.outcome.reason for one in due if one.outcome and one.id == "rejected"]
    same(reasons, ["Too much"], "the reason")
    same(len(store.due_outcomes(clock.now, 2)), 2, "a limit")
    same(store.due_outcomes(clock.now, scope=own_scope(store)), [], "of another thread")
    same(len(store.due_outcomes(clock.now, scope=scope)), 4, "of this thread")


@case(PROPOSAL_OUTCOME_CONTRACT, "02 the message and the delivery are written together, or neither")
def _together(subject: StoreSubject) -> None:
    store, scope = subject.store, own_scope(subject.store)
    done = settled(store, scope=scope)
    token = admitting(store)
    try:
        with store.atomic():
            needed(store.admit_outcome("p1", token, telling(done)))
            raise KeyError
    except KeyError:
        pass
    delivery = stored(store).delivery
    same((told(store, scope), delivery and delivery.status), ([], "admitting"), "taken back")
    admitted = needed(store.admit_outcome("p1", token, telling(done)))
    detail = store.get_thread(scope.thread_id)
    ids = [message.id for message in detail.messages] if detail else []
    same(
        admitted.delivery and (admitted.delivery.status, [admitted.delivery.message_id]),
        ("delivered", ids),
        "delivered",
    )
    same(told(store, scope), ["Done."], "the message")
    same(store.due_outcomes(subject.clock.now), [], "nothing is due")


@case(PROPOSAL_OUTCOME_CONTRACT, "02b in an idle thread a pending outcome is delivered in one step")
def _one_step(subject: StoreSubject) -> None:
    store, scope = subject.store, own_scope(subject.store)
    done = settled(store, scope=scope)
    same(store.admit_outcome("p1", None, telling(done)).status, "applied", "in one step")
    same(store.admit_outcome("p1", None, telling(done)).status, "unchanged", "again")
    same(told(store, scope), ["Done."], "the message")
    busy = own_scope(store, held_by="run-9")
    other = settled(store, "p2", busy)
    same(store.admit_outcome("p2", None, telling(other)).status, "busy", "while a run holds the thread")
    delivery = stored(store, "p2").delivery
    same((told(store, busy), delivery and delivery.status), ([], "pending"), "nothing is written")


@case(PROPOSAL_OUTCOME_CONTRACT, "02c a store that settles and tells in one move does both or neither")
def _at_once(subject: StoreSubject) -> None:
    store, scope, busy = subject.store, own_scope(subject.store), own_scope(subject.store, held_by="run-9")
    if not isinstance(store, SettlesAndTells):
        return
    held, other = claimed(store, "p1", scope), claimed(store, "p2", busy)
    token, generation = fence(held)
    late = store.settle_and_tell(scope, "p1", token, generation + 1, succeeded(), telling)
    same((late.status, told(store, scope)), ("conflict", []), "by another worker")
    done = needed(store.settle_and_tell(scope, "p1", token, generation, succeeded(), telling))
    same((told(store, scope), done.is_told), (["Done."], True), "an idle thread is told")
    same(store.settle_and_tell(scope, "p1", token, generation, succeeded(), telling).status, "conflict", "again")
    waits = needed(store.settle_and_tell(busy, "p2", *fence(other), succeeded(), telling))
    same((told(store, busy), waits.is_told), ([], False), "a busy thread is not")
    same([one.id for one in store.due_outcomes(subject.clock.now)], ["p2"], "its outcome waits")


@case(PROPOSAL_OUTCOME_CONTRACT, "03 a busy thread is told nothing, and later it is")
def _busy(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    scope = own_scope(store, held_by="run-9")
    done = settled(store, scope=scope)
    settled(store, "p2", own_scope(store))
    clock.advance(1)
    same(store.admit_outcome("p1", admitting(store), telling(done)).status, "busy", "busy")
    same(told(store, scope), [], "the thread")
    same([one.id for one in store.due_outcomes(clock.now)], ["p2", "p1"], "it is due again, behind those untried")
    store.release_active_run(scope.thread_id, "run-9")
    same(store.admit_outcome("p1", admitting(store), telling(done)).status, "applied", "when it is idle")


@case(PROPOSAL_OUTCOME_CONTRACT, "04 of racing admissions one writes, and a second one is unchanged", commits=True)
def _second(subject: StoreSubject) -> None:
    store, scope = subject.store, own_scope(subject.store)
    done = settled(store, scope=scope)
    token = admitting(store)
    answers = subject.parallel([partial(store.admit_outcome, "p1", token, telling(done))] * 4)
    same(sorted(answer.status for answer in answers), ["applied", *["unchanged"] * 3], "answers")
    same(told(store, scope), ["Done."], "the thread")
    same(store.claim_outcome("p1", LEASE_MS).status, "conflict", "nothing to claim")


@case(PROPOSAL_OUTCOME_CONTRACT, "05 a stale admission conflicts")
def _stale(subject: StoreSubject) -> None:
    store, clock, scope = subject.store, subject.clock, own_scope(subject.store)
    done = settled(store, scope=scope)
    first = admitting(store)
    same(store.claim_outcome("p1", LEASE_MS).status, "conflict", "somebody admits it")
    same(store.due_outcomes(clock.now), [], "it is not due")
    clock.advance(LEASE_MS / 1000)
    same([one.id for one in store.due_outcomes(clock.now)], ["p1"], "a lost admission is due")
    second = admitting(store)
    elsewhere = replace(telling(done), thread_id=own_scope(store).thread_id)
    same(store.admit_outcome("p1", second, elsewhere).status, "conflict", "in another thread")
    answers = [store.admit_outcome("p1", token, telling(done)).status for token in (first, "invented", second)]
    same(answers, ["conflict", "conflict", "applied"], "tokens")
    same(told(store, scope), ["Done."], "the thread")


@case(PROPOSAL_OUTCOME_CONTRACT, "06 where the thread is gone, or another's, the outcome is discarded")
def _discarded(subject: StoreSubject) -> None:
    store, deleted = subject.store, own_scope(subject.store)
    foreign = ProposalScope(tenant_ref=None, actor_ref="bo", thread_id=own_scope(store).thread_id)
    unknown = ProposalScope(tenant_ref=None, actor_ref="bo", thread_id="nowhere")
    for place, scope in enumerate((deleted, foreign, unknown)):
        done = settled(store, f"p{place}", scope)
        store.soft_delete_thread(deleted.thread_id)
        answer = store.admit_outcome(done.id, admitting(store, done.id), telling(done))
        same((answer.status, told(store, scope)), ("discarded", []), f"{scope}")
        delivery = stored(store, done.id).delivery
        same(delivery and delivery.status, "discarded", "the delivery")
    same(store.due_outcomes(subject.clock.now), [], "nothing is due")


@case(PROPOSAL_OUTCOME_CONTRACT, "08 nothing is admitted of what is not over, nor of what is unknown")
def _nothing(subject: StoreSubject) -> None:
    store = subject.store
    pending = made(store, scope=own_scope(store))
    same(store.claim_outcome("p1", LEASE_MS).status, "conflict", "no outcome")
    same(store.admit_outcome("p1", None, telling(pending)).status, "conflict", "no outcome to admit")
    same(store.claim_outcome("nobody", LEASE_MS).status, "not_found", "an unknown id")
    same(store.admit_outcome("nobody", None, telling(pending)).status, "not_found", "an unknown id")


@case(PROPOSED_CALL_CONTRACT, "01 a proposed call reads back with its proposal and its target")
def _target(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    new_call(store, message, status="proposed", proposal_id="p1", approver="role:lead")
    call = stored_call(store)
    same((call.status, call.proposal_id), ("proposed", "p1"), "the row")
    detail = store.get_thread(message.thread_id)
    [card] = (detail.messages[0].approvals if detail else None) or [{}]
    same(card.get("target"), {"kind": "proposal", "proposalId": "p1"}, "the card")


@case(
    PROPOSED_CALL_CONTRACT,
    "02 it is decided by its proposal alone, whose state the card shows",
    needs=("proposal_replacement", "proposals"),
)
def _decided_there(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    scope = ProposalScope(tenant_ref=ANA.tenant_ref, actor_ref=ANA.ref, thread_id=message.thread_id)
    made(store, scope=scope)
    new_call(store, message, status="proposed", proposal_id="p1", approver="role:lead")
    same(decide_call(store, "approved"), "conflict", "decide_tool_call")

    def card() -> dict[str, object]:
        detail = store.get_thread(message.thread_id)
        [only] = (detail.messages[0].approvals if detail else None) or [{}]
        return {name: only.get(name) for name in ("status", "decidedBy", "decidedVia", "reason")}

    pending = {"status": "pending", "decidedBy": None, "decidedVia": None, "reason": None}
    same(card(), pending, "a pending card")
    decide(store, "rejected", scope=scope, reason="No.")
    rejected = {"status": "rejected", "decidedBy": "lead", "decidedVia": "web", "reason": "No."}
    same(card(), rejected, "a decided card")


@case(PROPOSED_CALL_CONTRACT, "03 it is no open blocking approval")
def _not_open(subject: StoreSubject) -> None:
    store = subject.store
    new_call(store, called_message(store), status="proposed", proposal_id="p1", approver="role:lead")
    same(store.pending_approvals(10), [], "the inbox of blocking ones")
    same(store.fail_unsettled_tool_calls("run-1", "over"), 0, "the end of its run leaves it")
    same(stored_call(store).status, "proposed", "the row")
