"""One that waited for a person: what was asked, what was decided, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.domain.commands import UNSET
from agent.domain.proposal_json import from_snapshot
from agent.domain.proposals import Audit, Proposal
from agent.domain.snapshots import Json
from agent.domain.states import POSITIVE_DECISION, Decision, ToolCallDecision, ToolCallStatus
from agent.errors import NotFound
from agent.models import ActionProposal, ToolCall
from agent.models.tenants import within
from agent.store.orm.proposal_rows import row_key
from governance.queries.records import ApprovalRow
from governance.queries.selection import Selection
from governance.queries.waiting import at_ms, call_row, proposal_row, with_costs_and_titles
from governance.reading import one_view
from governance.rollups.marks import database

PENDING, APPROVED, REJECTED, EXPIRED, SUPERSEDED, CLOSED = STATES = (
    "pending",
    "approved",
    "rejected",
    "expired",
    "superseded",
    "closed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What somebody did about it, over which channel and why."""

    by: str
    via: str | None
    at: datetime | None
    reason: str | None
    remember: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDetail:
    """`state` is one of `STATES`; `closed`: its run ended before anybody had decided.

    `execution`: how far the action is, None where it was never to run. `settled` are those who said what became of an
    execution that was lost.
    """

    asked: ApprovalRow
    state: str
    decided: Act | None
    execution: str | None
    attempts: int | None = None
    result: Json = None
    error: str | None = None
    settled: Sequence[Act] = ()
    delivery: str | None = None
    superseded_by: str | None = None


def approval_detail(selection: Selection, subject: str) -> ApprovalDetail:
    """By the id of a call or of a proposal. Raises `NotFound` for one that is unknown or of another tenant."""
    with one_view():
        calls = ToolCall.objects.using(database()).filter(within(selection.tenants), pk=subject)
        call = calls.exclude(approver=None).first()
        if call is not None and call.status != ToolCallStatus.PROPOSED:
            return _of_call(call, selection)
        known = ActionProposal.objects.using(database()).filter(within(selection.tenants))
        row = known.filter(pk=row_key(subject if call is None else str(call.proposal_id))).first()
        if row is None:
            raise NotFound
        return _of_proposal(row, selection)


def _of_call(call: ToolCall, selection: Selection) -> ApprovalDetail:
    return ApprovalDetail(
        asked=with_costs_and_titles([call_row(call)], selection)[0],
        state=_state(call),
        decided=None
        if call.decision is None
        else Act(
            by=call.executed_by_ref or "",
            via=call.decided_via,
            at=call.decided_at,
            reason=call.decision_reason,
            remember=call.remember,
        ),
        execution=call.status if call.decision in POSITIVE_DECISION else None,
        result=call.output,
        error=call.error,
    )


def _state(call: ToolCall) -> str:
    if call.decision is None:
        return PENDING if call.status == ToolCallStatus.PENDING_APPROVAL else CLOSED
    if call.decision in POSITIVE_DECISION:
        return APPROVED
    return EXPIRED if call.decision == ToolCallDecision.EXPIRED else REJECTED


def _of_proposal(row: ActionProposal, selection: Selection) -> ApprovalDetail:
    proposal = from_snapshot(row.proposal)
    execution = proposal.execution
    return ApprovalDetail(
        asked=with_costs_and_titles([proposal_row(row)], selection)[0],
        state=str(proposal.decision),
        decided=None if proposal.audit is None or proposal.decision is Decision.PENDING else _act(proposal.audit),
        execution=None if execution is None else str(execution.status),
        attempts=None if execution is None else execution.generation,
        result=_result(proposal),
        error=None if execution is None else execution.error,
        settled=[] if execution is None else [_act(each) for each in execution.settled_by],
        delivery=None if proposal.delivery is None else str(proposal.delivery.status),
        superseded_by=proposal.superseded_by,
    )


def _result(proposal: Proposal) -> Json:
    execution = proposal.execution
    return None if execution is None or execution.result is UNSET else execution.result


def _act(audit: Audit) -> Act:
    return Act(by=audit.actor_ref, via=audit.via, at=at_ms(audit.at), reason=audit.reason, remember=audit.remember)
