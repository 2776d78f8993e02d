"""Pure rules of a person's decision about a blocking call: what it does to the row, and the card that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.domain.canonical import sha256_hex
from agent.domain.clock import wire_time
from agent.domain.proposals import target_of
from agent.domain.snapshots import Json, ToolCall
from agent.domain.states import POSITIVE_DECISION, ToolCallDecision, ToolCallStatus

REASON_MAX = 4096
EXPIRY = "expiry"  # `decided_via` of a deadline
SERVERS_WORDS = frozenset({"text", "admin", "remembered", EXPIRY})  # a client's `decided_via` is none of these

_STATUS_AFTER = {
    ToolCallDecision.APPROVED: ToolCallStatus.PENDING_APPROVAL,  # it is settled by the run that executes it
    ToolCallDecision.ANSWERED: ToolCallStatus.EXECUTED,
    ToolCallDecision.REJECTED: ToolCallStatus.REJECTED,
    ToolCallDecision.SKIPPED: ToolCallStatus.REJECTED,
    ToolCallDecision.EXPIRED: ToolCallStatus.EXPIRED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to a decision; `write` says which decision the row takes, None that it stays as it is."""

    answer: str  # applied, unchanged, conflict, expired
    write: ToolCallDecision | None = None


def judge(command: str, *, status: str, decision: str | None, expires_at: datetime | None, now: datetime) -> Verdict:
    """The first decision wins, and at its deadline an open call has expired (spec 07 §7, the table of decisions)."""
    if decision is not None:
        if decision == command:
            return Verdict(answer="unchanged")
        return Verdict(answer="expired" if decision == ToolCallDecision.EXPIRED else "conflict")
    if status != ToolCallStatus.PENDING_APPROVAL:
        return Verdict(answer="conflict")
    due = expires_at is not None and now >= expires_at
    if command == ToolCallDecision.EXPIRED:
        return Verdict(answer="applied", write=ToolCallDecision.EXPIRED) if due else Verdict(answer="conflict")
    if due:
        return Verdict(answer="expired", write=ToolCallDecision.EXPIRED)
    return Verdict(answer="applied", write=ToolCallDecision(command))


def status_after(decision: ToolCallDecision) -> ToolCallStatus:
    """The status of a waiting call once it is decided so."""
    return _STATUS_AFTER[decision]


def card_digest(subject: str, tool_name: str, given: Json, confirmation: Json, approver: str | None) -> str:
    """What a person was shown, in one hash: a decision that sends it back decides this and nothing else.

    `subject` is the id of the call, or of the proposal that stands for it.
    """
    return sha256_hex([subject, tool_name, given, confirmation, approver])


def digest_of(call: ToolCall) -> str:
    """The digest of a stored call's card."""
    return card_digest(call.proposal_id or call.id, call.tool_name, call.input, call.confirmation, call.approver)


def approval_card(call: ToolCall, decided: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A call that asked for a person, as a message lists it when it is read again; absent values are left out.

    `decided` is what became of the proposal of a proposed call, which is not decided in its own row.
    """
    card = {
        "id": call.id,
        "status": card_status(call),
        "approver": call.approver,
        "digest": digest_of(call),
        "fourEyes": call.four_eyes or None,
        "confirmation": call.confirmation,
        "expiresAt": None if call.expires_at is None else wire_time(call.expires_at),
        "decidedBy": call.executed_by_ref if call.decision is not None else None,
        "decidedVia": call.decided_via,
        "reason": call.decision_reason,
        "target": target_of(call.proposal_id or None),
        **(decided or {}),
    }
    return {name: value for name, value in card.items() if value is not None}


def card_status(call: ToolCall) -> str:
    """The word of a card: pending, approved, rejected or expired; of one that nobody decided, the call's own."""
    if call.decision is None:
        open_ = call.status in {ToolCallStatus.PENDING_APPROVAL, ToolCallStatus.PROPOSED, ToolCallStatus.RUNNING}
        return "pending" if open_ else str(call.status)
    if call.decision in POSITIVE_DECISION:
        return "approved"
    return "expired" if call.decision == ToolCallDecision.EXPIRED else "rejected"
