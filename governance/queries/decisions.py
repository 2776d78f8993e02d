"""What waits for a person, oldest first, and what people decided, newest first: calls and proposals in one list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q, QuerySet

from agent.domain.decisions import card_digest
from agent.domain.proposal_json import from_snapshot
from agent.domain.proposals import Proposal
from agent.domain.states import Decision
from agent.errors import Invalid
from agent.models import ActionProposal, Thread, ToolCall
from agent.models.tenants import within
from governance.base import genuine_calls
from governance.days import Span
from governance.queries.paging import COUNTED, LATEST_DEFAULT, LATEST_MOST, Ask, Field, Order, Where, narrowed
from governance.queries.records import ApprovalRow, DecisionRow
from governance.queries.selection import Selection
from governance.queries.usage import cost_fields, costs_by
from governance.queries.values import Page
from governance.reading import one_view
from governance.rollups.marks import database

BLOCKING, INDEPENDENT = KINDS = ("blocking", "independent")
OLDEST = Order(columns=("requested_at", "id"), descending=False)
NEWEST = Order(columns=("decided_at", "id"))
FIELDS: Mapping[str, Field] = {
    "toolName": "tool_name",
    "threadId": "thread_id",
    "actorRef": "actor_ref",
    "agentName": "agent_name",
    "tenantRef": "tenant_ref",
    "kind": lambda _: Q(),  # chooses the tables
}
OF_PROPOSALS = {"thread_id": "thread_ref"}
Decidable = Callable[[ApprovalRow], bool]


def pending_approvals(
    selection: Selection, limit: int = LATEST_DEFAULT, *, decidable: Decidable | None = None
) -> Sequence[ApprovalRow]:
    """What waits for a decision, whatever the range."""
    with one_view():
        rows = sorted(_pending(selection, {}, None, min(limit, LATEST_MOST)), key=_age)
        return _told(rows[: min(limit, LATEST_MOST)], selection, decidable)


def approvals_page(
    selection: Selection, where: Where | None = None, ask: Ask | None = None, *, decidable: Decidable | None = None
) -> Page[ApprovalRow]:
    """What waits; days, where they are given, are those on which it was asked."""
    given = where or {}
    span = narrowed(selection, given, FIELDS)[0].range.span if {"fromDay", "toDay"} & given.keys() else None
    with one_view():
        rows = sorted(_pending(selection, given, span, COUNTED + 1), key=_age)
        page = _page(rows, ask or Ask())
        return replace(page, rows=_told(page.rows, selection, decidable))


def decisions_page(selection: Selection, where: Where | None = None, ask: Ask | None = None) -> Page[DecisionRow]:
    """What was decided in the range."""
    given = where or {}
    asked, _ = narrowed(selection, given, FIELDS)
    with one_view():
        found = sorted(_decided(asked, given), key=lambda row: (row.decided_at, row.id), reverse=True)
        return _page(found, ask or Ask())


def _page(rows: Sequence[Any], ask: Ask) -> Page[Any]:
    """A page of rows that are few enough to be in hand: two tables make one list."""
    first = (ask.page - 1) * ask.size
    if ask.cursor is not None:
        if not ask.cursor.isdecimal() or len(ask.cursor) > 6:
            raise Invalid.field("cursor", "the nextCursor of a page of this table")
        first = int(ask.cursor)
    elif first + ask.size > COUNTED:
        raise Invalid("Pages by number end at row 10,000: go on with the cursor of a page.", code="use_cursor")
    behind = first + ask.size
    return Page(
        rows=rows[first:behind],
        total=min(len(rows), COUNTED),
        page=1 if ask.cursor is not None else ask.page,
        page_size=ask.size,
        next_cursor=str(behind) if len(rows) > behind else None,
        total_capped=True if len(rows) > COUNTED else None,
    )


def _age(row: ApprovalRow) -> tuple[datetime, str]:
    return row.requested_at, row.tool_call_id or row.proposal_id or ""


def _kinds(where: Where) -> Collection[str]:
    return KINDS if "kind" not in where else [kind for kind in KINDS if kind == where["kind"]]


def _conditions(selection: Selection, where: Where, renamed: Mapping[str, str]) -> Q:
    found = selection.q("tenant_ref", "agent", "actor") & narrowed(selection, where, _renamed(renamed))[1]
    return found & within(selection.tenants)


def _renamed(names: Mapping[str, str]) -> Mapping[str, Field]:
    return {name: names.get(field, field) if isinstance(field, str) else field for name, field in FIELDS.items()}


def _pending(selection: Selection, where: Where, span: Span | None, limit: int) -> Iterator[ApprovalRow]:
    kinds = _kinds(where)
    if BLOCKING in kinds:
        calls = genuine_calls(ToolCall.objects.using(database()).awaiting_decision())
        calls = calls.filter(_conditions(selection, where, {}))
        if span is not None:
            calls = calls.filter(created_at__gte=span.start, created_at__lt=span.end)
        yield from (_call(call) for call in calls.order_by("created_at", "id")[:limit])
    if INDEPENDENT in kinds:
        waiting = ActionProposal.objects.using(database()).awaiting_decision()
        asked = _proposed_in(waiting.filter(_conditions(selection, where, OF_PROPOSALS)), span)
        for row in asked.order_by("created_at_ms", "id")[:limit]:
            yield _proposal(row)


def _proposed_in(rows: QuerySet[ActionProposal], span: Span | None) -> QuerySet[ActionProposal]:
    if span is None:
        return rows
    return rows.filter(created_at_ms__gte=_ms(span.start), created_at_ms__lt=_ms(span.end))


def _call(call: ToolCall) -> ApprovalRow:
    return ApprovalRow(
        kind=BLOCKING,
        tool_call_id=call.pk,
        proposal_id=None,
        tool_name=call.tool_name,
        input=call.input,
        confirmation=call.confirmation,
        approver=call.approver,
        digest=card_digest(call.pk, call.tool_name, call.input, call.confirmation, call.approver),
        four_eyes=call.four_eyes,
        thread_id=call.thread_id,
        thread_title=None,
        actor_ref=call.actor_ref,
        tenant_ref=call.tenant_ref,
        agent_name=call.agent_name,
        requested_at=call.created_at,
        expires_at=call.expires_at,
        run_id=call.run_id,
        cost_nanos=None,
        decidable=None,
    )


def _proposal(row: ActionProposal) -> ApprovalRow:
    proposal = from_snapshot(row.proposal)
    asked = proposal.asked
    return ApprovalRow(
        kind=INDEPENDENT,
        tool_call_id=asked.origin_tool_call_id,
        proposal_id=asked.id,
        tool_name=asked.tool_name,
        input=asked.input,
        confirmation=asked.confirmation,
        approver=asked.approver,
        digest=proposal.digest,
        four_eyes=asked.four_eyes,
        thread_id=asked.scope.thread_id,
        thread_title=None,
        actor_ref=asked.scope.actor_ref,
        tenant_ref=asked.scope.tenant_ref,
        agent_name=row.agent_name,
        requested_at=_at(row.created_at_ms),
        expires_at=None if row.proposal_expires_at_ms is None else _at(row.proposal_expires_at_ms),
        run_id=asked.origin_run_id,
        cost_nanos=None,
        decidable=None,
    )


def _told(rows: Sequence[ApprovalRow], selection: Selection, decidable: Decidable | None) -> list[ApprovalRow]:
    """With what each run has cost and what its conversation is called; what was said only to those who may read it."""
    costs = costs_by("run_id", {row.run_id for row in rows if row.run_id is not None})
    threads = Thread.objects.using(database()).filter(pk__in={row.thread_id for row in rows})
    titles = dict(threads.values_list("pk", "title")) if selection.text and rows else {}
    return [
        replace(
            row,
            thread_title=titles.get(row.thread_id),
            cost_nanos=cost_fields(costs.get(row.run_id or ""))["cost_nanos"],
            decidable=None if decidable is None else decidable(row),
        )
        for row in rows
    ]


def _decided(selection: Selection, where: Where) -> Iterator[DecisionRow]:
    span, kinds = selection.range.span, _kinds(where)
    if BLOCKING in kinds:
        calls = genuine_calls(ToolCall.objects.using(database())).filter(_conditions(selection, where, {}))
        decided = calls.filter(decided_at__gte=span.start, decided_at__lt=span.end).exclude(decision=None)
        for call in decided.order_by("-decided_at", "-id")[: COUNTED + 1]:
            yield _decision_of_call(call, text=selection.text)
    if INDEPENDENT in kinds:
        rows = ActionProposal.objects.using(database()).exclude(decision=Decision.PENDING)
        rows = rows.filter(_conditions(selection, where, OF_PROPOSALS), created_at_ms__lt=_ms(span.end))
        for row in rows.order_by("-created_at_ms", "-id")[: COUNTED + 1]:
            found = _decision_of_proposal(row, from_snapshot(row.proposal), text=selection.text)
            if span.start <= found.decided_at < span.end:
                yield found


def _decision_of_call(call: ToolCall, *, text: bool) -> DecisionRow:
    return DecisionRow(
        kind=BLOCKING,
        id=call.pk,
        tool_name=call.tool_name,
        decision=call.decision or "",
        decided_by=call.executed_by_ref,
        decided_via=call.decided_via,
        decided_at=call.decided_at or call.created_at,
        reason=call.decision_reason if text else None,
        actor_ref=call.actor_ref,
        execution_status=call.status,
    )


def _decision_of_proposal(row: ActionProposal, proposal: Proposal, *, text: bool) -> DecisionRow:
    audit = proposal.audit
    return DecisionRow(
        kind=INDEPENDENT,
        id=proposal.id,
        tool_name=row.tool_name,
        decision=row.decision,
        decided_by=audit.actor_ref if audit else None,
        decided_via=audit.via if audit else None,
        decided_at=_at(audit.at if audit else row.created_at_ms),
        reason=audit.reason if audit and text else None,
        actor_ref=row.actor_ref,
        execution_status=row.execution_status,
    )


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, tz=UTC)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
