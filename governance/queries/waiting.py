"""What waits for a person, oldest first: calls, questions and proposals in one list (spec 07 §12)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet

from agent.domain.actor import Owner
from agent.domain.clock import epoch_ms
from agent.domain.decisions import card_digest
from agent.domain.proposal_json import from_snapshot
from agent.domain.questions import ASK
from agent.domain.states import Decision, ExecutionStatus
from agent.errors import Invalid
from agent.models import ActionProposal, Thread, ToolCall
from agent.models.tenants import within
from governance.base import genuine_calls
from governance.days import Span
from governance.queries.paging import COUNTED, LATEST_DEFAULT, LATEST_MOST, Ask, Field, Where, narrowed
from governance.queries.records import ApprovalRow
from governance.queries.runs import of_run
from governance.queries.selection import Selection
from governance.queries.spend import known_cost
from governance.queries.usage import NOTHING, costs_with_children
from governance.queries.values import Page
from governance.reading import one_view
from governance.rollups.marks import database

APPROVAL, QUESTION, PROPOSAL = KINDS = ("approval", "question", "proposal")
FIELDS: Mapping[str, Field] = {
    "toolName": "tool_name",
    "threadId": "thread_id",
    "actorRef": "actor_ref",
    "agentName": "agent_name",
    "tenantRef": "tenant_ref",
    "kind": lambda _: Q(),  # chooses the tables
}
OF_PROPOSALS = {"thread_id": "thread_ref", "run_id": "run_ref"}


class Item(NamedTuple):
    """One that waits: as much of it as it takes to order it, by its first columns, and to say who may decide it.

    There may be thousands.
    """

    at: datetime
    id: str
    kind: str
    approver: str | None
    actor_ref: str
    tenant_ref: str | None
    four_eyes: bool
    expires_at: datetime | None


MayDecide = Callable[[Item], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How much waits for whom; counts stop at 10,000 a table, which is what `capped` says."""

    items: Sequence[Item]
    mine: Sequence[Item]  # those that the one who looks may decide
    capped: bool


def waiting(
    selection: Selection,
    where: Where | None = None,
    *,
    owner: Owner | None = None,
    decidable: MayDecide | None = None,
) -> Waiting:
    """Everything that waits, oldest first. Four eyes of proposals are read for this `owner`, whom they may hinder."""
    given = where or {}
    span = narrowed(selection, given, FIELDS)[0].range.span if {"fromDay", "toDay"} & given.keys() else None
    tables = [list(table) for table in (_calls(selection, given, span), _proposals(selection, given, span, owner))]
    items = sorted(item for table in tables for item in table[:COUNTED])
    mine = [] if decidable is None else [item for item in items if decidable(item)]
    capped = any(len(table) > COUNTED for table in tables) or len(items) > COUNTED
    return Waiting(items=items, mine=mine, capped=capped)


def pending_approvals(
    selection: Selection, limit: int = LATEST_DEFAULT, *, owner: Owner | None = None, decidable: MayDecide | None = None
) -> Sequence[ApprovalRow]:
    """What waits for a decision, whatever the range."""
    with one_view():
        return rows_of(waiting(selection, owner=owner).items[: min(limit, LATEST_MOST)], selection, decidable)


def approvals_page(
    selection: Selection,
    where: Where | None = None,
    ask: Ask | None = None,
    *,
    owner: Owner | None = None,
    decidable: MayDecide | None = None,
) -> Page[ApprovalRow]:
    """What waits; days, where they are given, are those on which it was asked."""
    with one_view():
        found = waiting(selection, where, owner=owner)
        page = listed(found.items, ask or Ask(), len(found.items), capped=found.capped)
        return replace(page, rows=rows_of(page.rows, selection, decidable))


def listed(rows: Sequence[Any], ask: Ask, number: int, *, capped: bool) -> Page[Any]:
    """A page of several tables' rows in one order; so many of each are in hand as it may need, of `number` in all."""
    first = before(ask)
    behind = first + ask.size
    return Page(
        rows=rows[first:behind],
        total=min(number, COUNTED),
        page=1 if ask.cursor is not None else ask.page,
        page_size=ask.size,
        next_cursor=str(behind) if len(rows) > behind else None,
        total_capped=True if capped else None,
    )


def before(ask: Ask) -> int:
    """How many rows are before this page."""
    first = (ask.page - 1) * ask.size
    if ask.cursor is not None:
        if not ask.cursor.isdecimal() or len(ask.cursor) > 6:
            raise Invalid.field("cursor", "the nextCursor of a page of this table")
        return int(ask.cursor)
    if first + ask.size > COUNTED:
        raise Invalid("Pages by number end at row 10,000: go on with the cursor of a page.", code="use_cursor")
    return first


def kinds_of(where: Where) -> Collection[str]:
    return KINDS if "kind" not in where else [kind for kind in KINDS if kind == where["kind"]]


def conditions(selection: Selection, where: Where, renamed: Mapping[str, str]) -> Q:
    """The filters of a list of decisions on one of its tables; model and purpose are those of its run."""
    fields = {name: renamed.get(field, field) if isinstance(field, str) else field for name, field in FIELDS.items()}
    own = selection.q("tenant_ref", "agent", "actor") & narrowed(selection, where, fields)[1]
    return own & of_run(selection, renamed.get("run_id", "run_id"))


def call_conditions(kinds: Collection[str]) -> Q:
    """Of the calls, those of these kinds: a question is a call of the tool `ask`."""
    asked = Q(tool_name=ASK)
    return {(True, False): ~asked, (False, True): asked}.get((APPROVAL in kinds, QUESTION in kinds), Q())


# ---- what waits, in few columns ------------------------------------------------------------------------------------


def _calls(selection: Selection, where: Where, span: Span | None) -> Iterator[Item]:
    kinds = kinds_of(where)
    if not {APPROVAL, QUESTION}.intersection(kinds):
        return
    calls = genuine_calls(ToolCall.objects.using(database()).awaiting_decision())
    calls = calls.filter(conditions(selection, where, {}), call_conditions(kinds))
    if span is not None:
        calls = calls.filter(created_at__gte=span.start, created_at__lt=span.end)
    columns = ("created_at", "id", "tool_name", "approver", "actor_ref", "tenant_ref", "four_eyes", "expires_at")
    for at, pk, tool, approver, actor, tenant, four_eyes, expires in calls.order_by("created_at", "id").values_list(
        *columns
    )[: COUNTED + 1]:
        yield Item(at, pk, QUESTION if tool == ASK else APPROVAL, approver, actor, tenant, four_eyes, expires)


def _proposals(selection: Selection, where: Where, span: Span | None, owner: Owner | None) -> Iterator[Item]:
    if PROPOSAL not in kinds_of(where):
        return
    rows = _asking(ActionProposal.objects.using(database())).filter(conditions(selection, where, OF_PROPOSALS))
    if span is not None:
        rows = rows.filter(created_at_ms__gte=epoch_ms(span.start), created_at_ms__lt=epoch_ms(span.end))
    own = _under_four_eyes(rows, owner)
    columns = ("created_at_ms", "id", "approver", "actor_ref", "tenant_ref", "proposal_expires_at_ms", "decision")
    for ms, pk, approver, actor, tenant, expires, decision in rows.order_by("created_at_ms", "id").values_list(
        *columns
    )[: COUNTED + 1]:
        until = None if expires is None or decision != Decision.PENDING else at_ms(expires)
        yield Item(at_ms(ms), pk, PROPOSAL, approver, actor, tenant, pk in own, until)


def _asking(rows: QuerySet[ActionProposal]) -> QuerySet[ActionProposal]:
    """Proposals that nobody has decided, and executions of which nobody knows what became."""
    unknown = rows.filter(execution_status=ExecutionStatus.UNKNOWN, discovery_index_version__gt=0)
    return rows.filter(Q(decision=Decision.PENDING) | Q(pk__in=unknown.values("pk")))


def _under_four_eyes(rows: QuerySet[ActionProposal], owner: Owner | None) -> set[str]:
    """Of the owner's own, those that somebody else has to decide: the record says so, no column does."""
    if owner is None:
        return set()
    own = rows.filter(within([owner.tenant_ref]), actor_ref=owner.ref).values_list("pk", "proposal")
    return {pk for pk, record in own[: COUNTED + 1] if from_snapshot(record).asked.four_eyes}


# ---- the rows of a page, complete ----------------------------------------------------------------------------------


def rows_of(items: Sequence[Item], selection: Selection, may: MayDecide | None) -> list[ApprovalRow]:
    """With what each run has cost and what its conversation is called; titles only for those who may read text."""
    wanted = [item.id for item in items]
    calls = ToolCall.objects.using(database()).filter(pk__in=wanted)
    proposals = ActionProposal.objects.using(database()).filter(pk__in=wanted)
    known = {call.pk: call_row(call) for call in calls} | {row.pk: proposal_row(row) for row in proposals}
    judged = {item.id: None if may is None else may(item) for item in items}
    rows = [replace(known[pk], decidable=judged[pk]) for pk in wanted if pk in known]
    return with_costs_and_titles(rows, selection)


def with_costs_and_titles(rows: Sequence[ApprovalRow], selection: Selection) -> list[ApprovalRow]:
    costs = costs_with_children({row.run_id for row in rows if row.run_id is not None})
    threads = Thread.objects.using(database()).filter(pk__in={row.thread_id for row in rows})
    titles = dict(threads.values_list("pk", "title")) if selection.text and rows else {}
    return [
        replace(
            row,
            thread_title=titles.get(row.thread_id),
            cost_nanos=known_cost(costs.get(row.run_id or "", NOTHING)),
            unpriced_requests=costs.get(row.run_id or "", NOTHING)["unpriced_requests"],
        )
        for row in rows
    ]


def call_row(call: ToolCall) -> ApprovalRow:
    return ApprovalRow(
        kind=QUESTION if call.tool_name == ASK else APPROVAL,
        tool_call_id=call.pk,
        tool_name=call.tool_name,
        input=call.input,
        confirmation=call.confirmation,
        approver=call.approver,
        digest=card_digest(call.pk, call.tool_name, call.input, call.confirmation, call.approver),
        four_eyes=call.four_eyes,
        thread_id=call.thread_id,
        actor_ref=call.actor_ref,
        tenant_ref=call.tenant_ref,
        agent_name=call.agent_name,
        requested_at=call.created_at,
        expires_at=call.expires_at,
        run_id=call.run_id,
    )


def proposal_row(row: ActionProposal) -> ApprovalRow:
    proposal = from_snapshot(row.proposal)
    asked = proposal.asked
    unknown = row.execution_status == ExecutionStatus.UNKNOWN
    return ApprovalRow(
        kind=PROPOSAL,
        tool_call_id=asked.origin_tool_call_id,
        proposal_id=asked.id,
        tool_name=asked.tool_name,
        input=asked.input,
        confirmation=asked.confirmation,
        approver=asked.approver,
        digest=proposal.digest,
        four_eyes=asked.four_eyes,
        thread_id=asked.scope.thread_id,
        actor_ref=asked.scope.actor_ref,
        tenant_ref=asked.scope.tenant_ref,
        agent_name=row.agent_name,
        requested_at=at_ms(row.created_at_ms),
        expires_at=None if row.proposal_expires_at_ms is None or unknown else at_ms(row.proposal_expires_at_ms),
        run_id=asked.origin_run_id,
        execution=row.execution_status if unknown else None,
    )


def read_of(run_ids: Iterable[str]) -> Mapping[str, Mapping[str, int]]:
    """What the agent of each run has looked at: its reads by tool, with how often."""
    calls = ToolCall.objects.using(database()).filter(run_id__in=set(run_ids), tool_type="read")
    found: dict[str, dict[str, int]] = {}
    for run_id, tool in calls.order_by("created_at", "id").values_list(F("run_id"), "tool_name"):
        tools = found.setdefault(str(run_id), {})
        tools[tool] = tools.get(tool, 0) + 1
    return found


def at_ms(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, tz=UTC)
