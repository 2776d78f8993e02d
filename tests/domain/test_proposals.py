"""The states of a proposal move as the tables of spec 07 §7 and §11 say, and its snapshot is one text a record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.domain import proposal_moves as moves
from agent.domain.actor import Actor
from agent.domain.canonical import canonical_json, sha256_hex
from agent.domain.commands import UNSET
from agent.domain.proposal_json import fingerprint, from_snapshot, snapshot, wire
from agent.domain.proposals import (
    Answer,
    Decider,
    Lease,
    NewProposal,
    Proposal,
    ProposalScope,
    Settlement,
    proposal_id,
)
from agent.domain.states import (
    DELIVERY_MOVES,
    EXECUTION_MOVES,
    PROPOSAL_MOVES,
    Decision,
    ExecutionStatus,
    check_move,
)
from agent.errors import NotAllowed

NOW, DUE = 1_000, 2_000
LEAD = Decider(actor=Actor("lead"))
SCOPE = ProposalScope(tenant_ref=None, actor_ref="ana", thread_id="t1")


def pending(**more: Any) -> Proposal:
    asked = NewProposal(
        id="p1",
        scope=SCOPE,
        origin_run_id="r1",
        origin_message_id="m1",
        origin_tool_call_id="c1",
        tool_name="refund",
        input={"order": 1042},
        execution_context={"requestId": "q1"},
        confirmation=None,
        approver="lead",
        idempotency_key="r1:c1",
    )
    return Proposal(asked=replace(asked, expires_at=DUE, **more), created_at=NOW)


def decided(command: Decision, **more: Any) -> Proposal:
    now = DUE if command is Decision.EXPIRED else NOW
    if command is Decision.SUPERSEDED:
        return moves.supersede(pending(**more), "p2", now).proposal
    return moves.decide(pending(**more), command, LEAD, now).proposal


def lease(until: int, token: str = "t") -> Lease:
    return Lease(token=token, expires_at=until)


def executing(*, until: int = DUE, **more: Any) -> Proposal:
    return moves.claim(decided(Decision.APPROVED, **more), lease(until), NOW).proposal


DECISIONS = [  # from, command, at, answer, to
    ("pending", "approved", NOW, "applied", "approved"),
    ("pending", "rejected", NOW, "applied", "rejected"),
    ("pending", "approved", DUE - 1, "applied", "approved"),
    ("pending", "approved", DUE, "expired", "expired"),
    ("pending", "rejected", DUE, "expired", "expired"),
    ("pending", "expired", DUE, "applied", "expired"),
    ("pending", "expired", DUE - 1, "conflict", "pending"),
    *((each, each, DUE, "unchanged", each) for each in ("approved", "rejected", "expired")),
    *(("expired", each, DUE, "expired", "expired") for each in ("approved", "rejected")),
    *(("approved", each, DUE, "conflict", "approved") for each in ("rejected", "expired")),
    *(("rejected", each, DUE, "conflict", "rejected") for each in ("approved", "expired")),
    *(("superseded", each, DUE, "conflict", "superseded") for each in ("approved", "rejected", "expired")),
]


@pytest.mark.parametrize(("state", "command", "now", "answer", "after"), DECISIONS)
def test_a_decision_is_the_one_of_the_table(state: str, command: str, now: int, answer: str, after: str) -> None:
    seen = pending() if state == "pending" else decided(Decision(state))
    moved = moves.decide(seen, Decision(command), LEAD, now)
    assert (moved.answer, moved.proposal.decision) == (answer, after)
    assert (moved.proposal is seen) == (state == after)  # what changes nothing is not written
    assert (moved.proposal.execution is not None) == (after == "approved")


EXECUTIONS = [  # onLost, claims so far, at, answer, to
    ("retry", 0, NOW, "applied", "executing"),
    ("retry", 1, DUE - 1, "conflict", "executing"),
    ("retry", 1, DUE, "applied", "executing"),
    ("retry", 6, DUE, "conflict", "unknown"),
    ("hold", 1, DUE, "conflict", "unknown"),
]


@pytest.mark.parametrize(("on_lost", "generation", "now", "answer", "after"), EXECUTIONS)
def test_a_claim_is_the_one_of_the_table(on_lost: str, generation: int, now: int, answer: str, after: str) -> None:
    seen = decided(Decision.APPROVED, on_lost=on_lost)
    if generation:
        held = executing(on_lost=on_lost)
        assert held.execution is not None
        seen = replace(held, execution=replace(held.execution, generation=generation))
    moved = moves.claim(seen, lease(now + 10, "other"), now)
    assert moved.proposal.execution is not None
    assert (moved.answer, moved.proposal.execution.status) == (answer, after)
    assert moved.proposal.execution.generation == generation + (answer == "applied")


@pytest.mark.parametrize(
    ("token", "generation", "now", "answer"),
    [("t", 1, DUE - 1, "applied"), ("t", 1, DUE, "expired"), ("x", 1, NOW, "conflict"), ("t", 2, NOW, "conflict")],
)
def test_only_the_holder_within_its_lease_writes(token: str, generation: int, now: int, answer: str) -> None:
    done = Settlement(status="succeeded", result=1)
    assert moves.settle(executing(), token, generation, done, now).answer == answer
    assert moves.renew(executing(), token, generation, until=now + 1, now=now).answer == answer


@pytest.mark.parametrize("end", [Settlement(status="succeeded"), Settlement(status="failed", error="No."), None])
def test_a_person_settles_what_is_unknown_and_nothing_else(end: Settlement | None) -> None:
    unknown = moves.claim(executing(on_lost="hold"), lease(DUE + 9), DUE).proposal
    moved = moves.settle_unknown(unknown, end, LEAD, DUE)
    assert moved.answer == "applied"
    assert moved.proposal.execution is not None
    assert moved.proposal.execution.status == ("queued" if end is None else end.status)
    assert (moved.proposal.outcome is None) == (end is None)
    for seen in (pending(), executing(), moved.proposal):
        assert moves.settle_unknown(seen, end, LEAD, DUE).answer == "conflict"


@pytest.mark.parametrize("by", [Actor("ana"), Actor("ana", ("lead", "superuser"))], ids=["plain", "powerful"])
def test_under_four_eyes_who_asked_decides_and_settles_nothing(by: Actor) -> None:
    own = Decider(actor=by)
    for command in (Decision.APPROVED, Decision.REJECTED):
        with pytest.raises(NotAllowed):
            moves.decide(pending(four_eyes=True), command, own, NOW)
    unknown = moves.claim(executing(on_lost="hold", four_eyes=True), lease(DUE + 9), DUE).proposal
    for end in (Settlement(status="succeeded"), None):
        with pytest.raises(NotAllowed):
            moves.settle_unknown(unknown, end, own, DUE)
    assert moves.decide(pending(four_eyes=True), Decision.APPROVED, LEAD, NOW).answer == "applied"


def test_a_renewal_never_shortens_a_lease() -> None:
    renewed = moves.renew(executing(until=DUE), "t", 1, until=DUE - 500, now=NOW).proposal
    assert renewed.execution is not None
    assert renewed.execution.lease == lease(DUE)


ADMISSIONS = [  # token, thread, answer, delivery
    ("t", Answer.APPLIED, "applied", "delivered"),
    ("t", Answer.BUSY, "busy", "pending"),
    ("t", Answer.DISCARDED, "discarded", "discarded"),
    ("other", Answer.APPLIED, "conflict", "admitting"),
    (None, Answer.APPLIED, "conflict", "admitting"),
]


@pytest.mark.parametrize(("token", "thread", "answer", "after"), ADMISSIONS)
def test_an_admission_is_the_one_of_the_table(token: str | None, thread: Answer, answer: str, after: str) -> None:
    admitting = moves.claim_outcome(decided(Decision.REJECTED), lease(DUE), NOW).proposal
    moved = moves.admit(admitting, token, thread, "m2", NOW)
    assert moved.proposal.delivery is not None
    assert (moved.answer, moved.proposal.delivery.status) == (answer, after)


COMMANDS = st.sampled_from(
    ["approved", "rejected", "expired", "supersede", "claim", "renew", "settle", "unknown", "again"]
)


@given(st.lists(st.tuples(COMMANDS, st.integers(0, 40)), max_size=25), st.sampled_from(["retry", "hold"]))
@settings(max_examples=80, deadline=None)
def test_whatever_is_commanded_every_move_is_one_of_the_tables(steps: list[tuple[str, int]], on_lost: str) -> None:
    now, seen = NOW, pending(on_lost=on_lost)
    for command, passed in steps:
        now += passed * 50
        after = _commanded(seen, command, now)
        if after.decision is not seen.decision:
            check_move(PROPOSAL_MOVES, seen.decision, after.decision)
        old, new = seen.execution, after.execution
        if old is not None and new is not None and old != new:
            check_move(EXECUTION_MOVES, old.status, new.status) if old.status != new.status else None
            assert new.generation >= old.generation
        assert (new is not None) == (after.decision is Decision.APPROVED)
        ended = after.decision not in {Decision.PENDING, Decision.APPROVED} or (
            new is not None and new.status in {ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED}
        )
        assert (after.delivery is not None) == ended
        assert after.asked == seen.asked
        assert from_snapshot(snapshot(after)) == after
        seen = after


def _commanded(seen: Proposal, command: str, now: int) -> Proposal:
    held = seen.execution.lease.token if seen.execution and seen.execution.lease else "none"
    generation = seen.execution.generation if seen.execution else 0
    done = Settlement(status="succeeded", result=None)
    if command == "supersede":
        return moves.supersede(seen, "p2", now).proposal
    if command == "claim":
        return moves.claim(seen, lease(now + 300, f"t{now}"), now).proposal
    if command == "renew":
        return moves.renew(seen, held, generation, until=now + 300, now=now).proposal
    if command == "settle":
        return moves.settle(seen, held, generation, done, now).proposal
    if command in {"unknown", "again"}:
        return moves.settle_unknown(seen, None if command == "again" else done, LEAD, now).proposal
    return moves.decide(seen, Decision(command), LEAD, now).proposal


def test_the_moves_of_a_delivery_are_those_of_the_table() -> None:
    first = decided(Decision.REJECTED)
    assert first.delivery is not None
    admitting = moves.claim_outcome(first, lease(DUE), NOW).proposal
    assert admitting.delivery is not None
    check_move(DELIVERY_MOVES, first.delivery.status, admitting.delivery.status)
    assert moves.claim_outcome(admitting, lease(DUE), DUE - 1).answer == "conflict"
    assert moves.claim_outcome(admitting, lease(DUE + 9), DUE).answer == "applied"
    assert moves.claim_outcome(decided(Decision.SUPERSEDED), lease(DUE), NOW).answer == "conflict"
    assert moves.claim_outcome(pending(), lease(DUE), NOW).answer == "conflict"


def test_the_id_is_the_hash_of_run_and_call() -> None:
    assert proposal_id("r1", "c1") == f"proposal-{sha256_hex(['r1', 'c1'])}"
    assert proposal_id("r1", "c1") != proposal_id("r", "1c1")


def test_the_digest_names_what_a_person_was_shown_and_nothing_else() -> None:
    shown = pending()
    assert shown.digest == sha256_hex(["p1", "refund", {"order": 1042}, None, "lead"])
    assert decided(Decision.APPROVED).digest == shown.digest
    changes: list[dict[str, Any]] = [{"input": {"order": 1}}, {"approver": "boss"}, {"confirmation": {"title": "x"}}]
    assert shown.digest not in {replace(shown, asked=replace(shown.asked, **each)).digest for each in changes}


def test_the_wire_hides_what_is_not_for_clients() -> None:
    failed = moves.settle(executing(), "t", 1, Settlement(status="failed", error="x"), NOW).proposal
    told = wire(moves.claim_outcome(failed, lease(DUE), NOW).proposal)
    text = canonical_json(told)
    for hidden in ("preparationInput", "executionContext", "idempotencyKey", "lease", "token"):
        assert hidden not in text
    assert {"id", "scope", "input", "digest", "decision", "audit", "execution", "outcome", "delivery"} <= set(told)


def test_an_absent_raw_input_is_none_of_null() -> None:
    absent, null = pending(), pending(preparation_input=None)
    assert fingerprint(absent.asked) != fingerprint(null.asked)
    assert from_snapshot(snapshot(absent)).asked.preparation_input is UNSET
    assert from_snapshot(snapshot(null)).asked.preparation_input is None
