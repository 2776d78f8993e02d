"""What people decided, newest first: calls, questions and proposals in one list."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import QuerySet

from agent.domain.clock import epoch_ms
from agent.domain.proposal_json import from_snapshot
from agent.domain.proposals import Proposal
from agent.domain.questions import ASK
from agent.domain.states import Decision
from agent.models import ActionProposal, ToolCall
from governance.base import genuine_calls
from governance.queries.paging import COUNTED, Ask, Where, narrowed
from governance.queries.records import DecisionRow
from governance.queries.selection import Selection
from governance.queries.values import Page
from governance.queries.waiting import (
    APPROVAL,
    FIELDS,
    OF_PROPOSALS,
    PROPOSAL,
    QUESTION,
    at_ms,
    before,
    call_conditions,
    conditions,
    kinds_of,
    listed,
)
from governance.reading import one_view
from governance.rollups.marks import database


def decisions_page(selection: Selection, where: Where | None = None, ask: Ask | None = None) -> Page[DecisionRow]:
    """What was decided in the range."""
    given = where or {}
    asked, _ = narrowed(selection, given, FIELDS)
    wanted = ask or Ask()
    most = before(wanted) + wanted.size + 1
    with one_view():
        calls, proposals = _decided_calls(asked, given), list(_decided_proposals(asked, given))
        newest = [*map(_decision_of_call, calls[:most]), *proposals]
        newest.sort(key=lambda row: (row.decided_at, row.id), reverse=True)
        number = calls.order_by()[: COUNTED + 1].count() + len(proposals)
        return listed(newest, wanted, number, capped=number > COUNTED)


def _decided_calls(selection: Selection, where: Where) -> QuerySet[ToolCall]:
    """Calls that somebody decided in the range, newest first."""
    span, kinds = selection.range.span, kinds_of(where)
    calls = genuine_calls(ToolCall.objects.using(database())).filter(conditions(selection, where, {}))
    decided = calls.filter(decided_at__gte=span.start, decided_at__lt=span.end).exclude(decision=None)
    asked = decided.filter(call_conditions(kinds)) if {APPROVAL, QUESTION}.intersection(kinds) else decided.none()
    return asked.order_by("-decided_at", "-id")


def _decided_proposals(selection: Selection, where: Where) -> Iterator[DecisionRow]:
    """Proposals that were decided in the range; when is told by their record alone, so all of them are looked at."""
    if PROPOSAL not in kinds_of(where):
        return
    span = selection.range.span
    rows = ActionProposal.objects.using(database()).exclude(decision=Decision.PENDING)
    rows = rows.filter(conditions(selection, where, OF_PROPOSALS), created_at_ms__lt=epoch_ms(span.end))
    for row in rows.order_by("-created_at_ms", "-id")[: COUNTED + 1]:
        found = _decision_of_proposal(row, from_snapshot(row.proposal))
        if span.start <= found.decided_at < span.end:
            yield found


def _decision_of_call(call: ToolCall) -> DecisionRow:
    return DecisionRow(
        kind=QUESTION if call.tool_name == ASK else APPROVAL,
        id=call.pk,
        tool_name=call.tool_name,
        decision=call.decision or "",
        decided_by=call.executed_by_ref,
        decided_via=call.decided_via,
        decided_at=call.decided_at or call.created_at,
        reason=call.decision_reason,
        actor_ref=call.actor_ref,
        execution_status=call.status,
    )


def _decision_of_proposal(row: ActionProposal, proposal: Proposal) -> DecisionRow:
    audit = proposal.audit
    return DecisionRow(
        kind=PROPOSAL,
        id=proposal.id,
        tool_name=row.tool_name,
        decision=row.decision,
        decided_by=audit.actor_ref if audit else None,
        decided_via=audit.via if audit else None,
        decided_at=at_ms(audit.at if audit else row.created_at_ms),
        reason=audit.reason if audit else None,
        actor_ref=row.actor_ref,
        execution_status=row.execution_status,
    )
