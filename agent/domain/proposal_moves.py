"""The moves of an action proposal (spec 07 §7 and §11): pure, with the instant given. The same object = no write."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.domain.decisions import REASON_MAX
from agent.domain.proposals import (
    EXPIRY,
    REPLACEMENT,
    SYSTEM,
    Answer,
    Audit,
    Decider,
    Delivery,
    Execution,
    Lease,
    Outcome,
    Proposal,
    Settlement,
)
from agent.domain.states import Decision, DeliveryStatus, ExecutionStatus
from agent.errors import NotAllowed

COMMANDS = (Decision.APPROVED, Decision.REJECTED, Decision.EXPIRED)
RESOLVED = (ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED)
CLAIMS_MAX = 6  # of one that is tried again: RUN_MAX_RECOVERIES + 1


@dataclass(frozen=True, slots=True)
class Moved:
    """The answer, and the proposal as it is to be written; the one that was seen where nothing is."""

    answer: Answer
    proposal: Proposal


# ---- decision --------------------------------------------------------------------------------------------------------


def decide(seen: Proposal, command: Decision, by: Decider, now: int) -> Moved:
    """The first decision wins, and at its deadline a pending proposal has expired."""
    if seen.decision is not Decision.PENDING:
        if seen.decision is command:
            return Moved(Answer.UNCHANGED, seen)
        return Moved(Answer.EXPIRED if seen.decision is Decision.EXPIRED else Answer.CONFLICT, seen)
    if is_due(seen, now):
        answer = Answer.APPLIED if command is Decision.EXPIRED else Answer.EXPIRED
        return Moved(answer, _ended(seen, Decision.EXPIRED, _system(EXPIRY, now)))
    if command is Decision.EXPIRED:
        return Moved(Answer.CONFLICT, seen)
    _refuse_own(seen, by)
    audit = audit_of(by, now)
    if command is Decision.REJECTED:
        return Moved(Answer.APPLIED, _ended(seen, command, audit))
    queued = Execution(status=ExecutionStatus.QUEUED)
    return Moved(Answer.APPLIED, replace(seen, decision=command, audit=audit, execution=queued))


def supersede(seen: Proposal, successor: str, now: int) -> Moved:
    """A newer proposal of its group takes its place; not that of one that is decided."""
    if seen.decision is not Decision.PENDING:
        return Moved(Answer.CONFLICT, seen)
    if is_due(seen, now):
        return Moved(Answer.EXPIRED, _ended(seen, Decision.EXPIRED, _system(EXPIRY, now)))
    replaced = replace(
        seen,
        decision=Decision.SUPERSEDED,
        audit=_system(REPLACEMENT, now),
        superseded_by=successor,
        delivery=Delivery(status=DeliveryStatus.NONE),
    )
    return Moved(Answer.APPLIED, replaced)


def is_due(proposal: Proposal, now: int) -> bool:
    """Whether its deadline has come: the deadline itself is too late."""
    return proposal.asked.expires_at is not None and now >= proposal.asked.expires_at


def is_open(proposal: Proposal) -> bool:
    """Whether something may still happen: it waits for a person or a worker."""
    if proposal.decision is Decision.PENDING:
        return True
    return proposal.execution is not None and proposal.execution.status not in RESOLVED


def audit_of(by: Decider, now: int) -> Audit:
    reason = None if by.reason is None else by.reason[:REASON_MAX]
    ref = SYSTEM if by.actor is None else by.actor.ref
    return Audit(actor_ref=ref, via=by.via, at=now, reason=reason, remember=by.remember)


def _system(via: str, now: int) -> Audit:
    return Audit(actor_ref=SYSTEM, via=via, at=now)


def _ended(seen: Proposal, decision: Decision, audit: Audit) -> Proposal:
    outcome = Outcome(id=outcome_id(seen.id), status=decision.value, at=audit.at, reason=audit.reason)
    return replace(seen, decision=decision, audit=audit, outcome=outcome, delivery=_due(audit.at))


# ---- execution -------------------------------------------------------------------------------------------------------


def claim(seen: Proposal, lease: Lease, now: int, *, most: int = CLAIMS_MAX) -> Moved:
    """Take it up. A lost one is taken up again only as its tool declared, and `most` times in all."""
    execution = seen.execution
    if execution is None:
        return Moved(Answer.CONFLICT, seen)
    lapsed = execution.status is ExecutionStatus.EXECUTING and not _holds(execution, now)
    if lapsed and (seen.asked.on_lost != "retry" or execution.generation >= most):
        unknown = replace(execution, status=ExecutionStatus.UNKNOWN, lease=None)
        return Moved(Answer.CONFLICT, replace(seen, execution=unknown))
    if not lapsed and execution.status is not ExecutionStatus.QUEUED:
        return Moved(Answer.CONFLICT, seen)
    claimed = replace(execution, status=ExecutionStatus.EXECUTING, generation=execution.generation + 1, lease=lease)
    return Moved(Answer.APPLIED, replace(seen, execution=claimed))


def renew(seen: Proposal, token: str, generation: int, *, until: int, now: int) -> Moved:
    """Hold it for longer; never for less."""
    refused = _fence(seen, token, generation, now)
    if refused is not None:
        return Moved(refused, seen)
    assert seen.execution is not None
    assert seen.execution.lease is not None
    lease = replace(seen.execution.lease, expires_at=max(seen.execution.lease.expires_at, until))
    return Moved(Answer.APPLIED, replace(seen, execution=replace(seen.execution, lease=lease)))


def settle(seen: Proposal, token: str, generation: int, end: Settlement, now: int) -> Moved:
    """Record how it ended, by whoever still holds it."""
    refused = _fence(seen, token, generation, now)
    return Moved(Answer.APPLIED, _settled(seen, end, now)) if refused is None else Moved(refused, seen)


def settle_unknown(seen: Proposal, end: Settlement | None, by: Decider, now: int) -> Moved:
    """A person says what became of it; without an `end` it runs again, with the same idempotency key."""
    execution = seen.execution
    if execution is None or execution.status is not ExecutionStatus.UNKNOWN:
        return Moved(Answer.CONFLICT, seen)
    _refuse_own(seen, by)
    told = replace(execution, settled_by=(*execution.settled_by, audit_of(by, now)))
    if end is None:
        return Moved(Answer.APPLIED, replace(seen, execution=replace(told, status=ExecutionStatus.QUEUED)))
    return Moved(Answer.APPLIED, _settled(replace(seen, execution=told), end, now))


def _refuse_own(seen: Proposal, by: Decider) -> None:
    """Under four eyes whoever asked decides nothing about it."""
    if seen.asked.four_eyes and by.actor is not None and seen.scope.is_of(by.actor):
        raise NotAllowed("Somebody else has to decide this.")


def outcome_id(proposal_id: str) -> str:
    return f"{proposal_id}:outcome:1"


def _holds(execution: Execution, now: int) -> bool:
    return execution.lease is not None and now < execution.lease.expires_at


def _fence(seen: Proposal, token: str, generation: int, now: int) -> Answer | None:
    """Why the holder of this token and generation may not write; None = it may."""
    execution = seen.execution
    if execution is None or execution.lease is None or execution.status is not ExecutionStatus.EXECUTING:
        return Answer.CONFLICT
    if (execution.lease.token, execution.generation) != (token, generation):
        return Answer.CONFLICT
    return None if _holds(execution, now) else Answer.EXPIRED


def _settled(seen: Proposal, end: Settlement, now: int) -> Proposal:
    assert seen.execution is not None
    execution = replace(
        seen.execution, status=ExecutionStatus(end.status), lease=None, result=end.result, error=end.error
    )
    outcome = Outcome(
        id=outcome_id(seen.id),
        status=end.status,
        at=now,
        result=end.result,
        error=end.error,
        text=end.text,
        ui=end.ui,
    )
    return replace(seen, execution=execution, outcome=outcome, delivery=_due(now))


# ---- delivery --------------------------------------------------------------------------------------------------------


def claim_outcome(seen: Proposal, lease: Lease, now: int) -> Moved:
    """Take the outcome up for its way into the thread."""
    delivery = seen.delivery
    if delivery is None:
        return Moved(Answer.CONFLICT, seen)
    lapsed = delivery.status is DeliveryStatus.ADMITTING and delivery.lease and now >= delivery.lease.expires_at
    if delivery.status is not DeliveryStatus.PENDING and not lapsed:
        return Moved(Answer.CONFLICT, seen)
    taken = replace(delivery, status=DeliveryStatus.ADMITTING, generation=delivery.generation + 1, lease=lease)
    return Moved(Answer.APPLIED, replace(seen, delivery=taken))


def admit(seen: Proposal, token: str | None, thread: Answer, message_id: str, now: int) -> Moved:
    """Deliver into a thread that is `applied` (idle), `busy` or `discarded` (gone, or another's).

    Without a token a pending outcome is delivered in one step, which only an idle thread lets happen.
    """
    delivery = seen.delivery
    if delivery is None or delivery.status in {DeliveryStatus.NONE, DeliveryStatus.DISCARDED}:
        return Moved(Answer.CONFLICT, seen)
    if seen.is_told:
        return Moved(Answer.UNCHANGED, seen)
    if token is None:
        if delivery.status is not DeliveryStatus.PENDING:
            return Moved(Answer.CONFLICT, seen)
        if thread is not Answer.APPLIED:
            return Moved(thread, seen)
    elif delivery.lease is None or delivery.lease.token != token:
        return Moved(Answer.CONFLICT, seen)
    return Moved(thread, replace(seen, delivery=_delivered(delivery, thread, message_id, now)))


def _delivered(delivery: Delivery, thread: Answer, message_id: str, now: int) -> Delivery:
    if thread is Answer.BUSY:  # behind those that nobody has tried yet
        return replace(delivery, status=DeliveryStatus.PENDING, due_at=now, lease=None)
    if thread is Answer.DISCARDED:
        return replace(delivery, status=DeliveryStatus.DISCARDED, lease=None)
    return replace(delivery, status=DeliveryStatus.DELIVERED, lease=None, message_id=message_id)


def _due(now: int) -> Delivery:
    return Delivery(status=DeliveryStatus.PENDING, due_at=now)
