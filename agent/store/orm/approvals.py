"""Capability `tool_calls`: what people decide about calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Q

from agent.domain.actor import Owner
from agent.domain.commands import ApprovalFilter, ToolDecision
from agent.domain.decisions import EXPIRY, REASON_MAX, Verdict, approval_card, judge, status_after
from agent.domain.snapshots import DecisionAnswer, PendingApproval
from agent.domain.snapshots import Message as MessageValue
from agent.domain.snapshots import ToolCall as ToolCallValue
from agent.domain.states import POSITIVE_DECISION, ToolCallDecision, ToolCallStatus
from agent.domain.tool_calls import settlement
from agent.errors import NotAllowed
from agent.models import Run, ToolCall
from agent.models.tool_call import ToolCallQuerySet
from agent.store.orm import rows
from agent.store.orm.proposal_rows import cards_of
from agent.store.orm.unit import OrmUnit

_UNKNOWN = DecisionAnswer(status="not_found")
_OF_THREAD = ("thread__title", "thread__actor_ref", "thread__tenant_ref")


@dataclass(frozen=True, slots=True)
class _Seen:
    """A call as its decider finds it, under the locks of its run and of itself."""

    call: ToolCallValue
    owner: Owner
    run_id: str | None  # the run to wake: the call's own, else the one that holds the thread


class OrmApprovals(OrmUnit):
    def decide_tool_call(self, call_id: str, decision: ToolDecision) -> DecisionAnswer:
        refused = False
        with self.joined():
            seen = self._seen(call_id)
            if seen is not None and _awaits(seen.call):
                seen = self._locked_call(seen)
            if seen is None:
                return _UNKNOWN
            now = self.clock()
            verdict = _judged(seen.call, decision, now)
            refused = _own_under_four_eyes(seen, verdict, decision)
            if not refused and verdict.write is not None:
                self._awaiting(call_id).update(**_written(verdict.write, decision, now))
        if refused:
            raise NotAllowed("Somebody else has to decide this.")
        stands = seen.call.decision if verdict.write is None else verdict.write.value
        return DecisionAnswer(status=verdict.answer, run_id=seen.run_id, decision=stands)

    def _seen(self, call_id: str) -> _Seen | None:
        """The call without a lock: enough for what is decided, which never changes again."""
        names = (*rows.TOOL_CALL, "thread__actor_ref", "thread__tenant_ref", "thread__active_run_id")
        live = ToolCall.objects.using(self.db).filter(pk=call_id, thread__deleted_at=None)
        row = live.values(*names).first()
        if row is None:
            return None
        owner = Owner(row["thread__actor_ref"], row["thread__tenant_ref"])
        return _Seen(rows.tool_call(row), owner, row["run_id"] or row["thread__active_run_id"])

    def _locked_call(self, seen: _Seen) -> _Seen | None:
        """The call once more, after the lock of its run: a parking run reads its calls under the same lock."""
        self._lock_run(seen.call.run_id)
        row = (
            ToolCall.objects.using(self.db).select_for_update().filter(pk=seen.call.id).values(*rows.TOOL_CALL).first()
        )
        return None if row is None else replace(seen, call=rows.tool_call(row))

    def _lock_run(self, run_id: str | None) -> None:
        if run_id is not None:
            Run.objects.using(self.db).select_for_update().filter(pk=run_id).values_list("pk").first()

    def _awaiting(self, call_id: str) -> ToolCallQuerySet:
        return ToolCall.objects.using(self.db).filter(pk=call_id).awaiting_decision()

    def expire_tool_calls(self, now: datetime, limit: int = 100) -> list[tuple[str, str | None]]:
        if limit <= 0:
            return []
        overdue = ToolCall.objects.using(self.db).overdue(now).order_by("expires_at", "id")
        found = list(overdue.values_list("id", "run_id", "thread__active_run_id")[:limit])
        return [(call_id, run_id or holder) for call_id, run_id, holder in found if self._expired(call_id, run_id, now)]

    def _expired(self, call_id: str, run_id: str | None, now: datetime) -> bool:
        with self.joined():
            self._lock_run(run_id)
            due = self._awaiting(call_id).filter(expires_at__lte=now)
            return due.update(**_expiry(now)) == 1

    def remembered_approvals(self, thread_id: str, *, approver: str | None = None) -> set[str]:
        decided = ToolCall.objects.using(self.db).filter(thread_id=thread_id, remember=True)
        if approver is not None:
            decided = decided.filter(approver=approver)
        return set(decided.filter(decision__in=POSITIVE_DECISION).values_list("tool_name", flat=True))

    def pending_approvals(self, limit: int, filters: ApprovalFilter | None = None) -> list[PendingApproval]:
        if limit <= 0:
            return []
        waiting = ToolCall.objects.using(self.db).awaiting_decision().filter(thread__deleted_at=None)
        asked = waiting.filter(_wanted(filters or ApprovalFilter())).order_by("created_at", "id")
        return [
            PendingApproval(
                tool_call=rows.tool_call(row),
                thread_title=row["thread__title"],
                owner=Owner(row["thread__actor_ref"], row["thread__tenant_ref"]),
            )
            for row in asked.values(*rows.TOOL_CALL, *_OF_THREAD)[:limit]
        ]


def _awaits(call: ToolCallValue) -> bool:
    return call.status == ToolCallStatus.PENDING_APPROVAL and call.decision is None


def _judged(call: ToolCallValue, decision: ToolDecision, now: datetime) -> Verdict:
    return judge(decision.decision, status=call.status, decision=call.decision, expires_at=call.expires_at, now=now)


def _own_under_four_eyes(seen: _Seen, verdict: Verdict, decision: ToolDecision) -> bool:
    """Whether the requester would decide what somebody else has to; a deadline passes for everybody."""
    if verdict.write in {None, ToolCallDecision.EXPIRED} or not seen.call.four_eyes:
        return False
    return decision.actor is not None and decision.actor.same_as(seen.owner)


def _written(taken: ToolCallDecision, asked: ToolDecision, now: datetime) -> dict[str, Any]:
    if taken is ToolCallDecision.EXPIRED:
        return _expiry(now)
    times = settlement(status_after(taken), now)
    return {
        "status": status_after(taken),
        "decision": taken,
        "decided_at": now,
        "decided_via": asked.via,
        "decision_reason": None if asked.reason is None else asked.reason[:REASON_MAX],
        "executed_by_ref": None if asked.actor is None else asked.actor.ref,
        "remember": asked.remember,
        "answers": asked.answers,
        "executed_at": times.executed_at,
        "settled_at": times.settled_at,
    }


def _expiry(now: datetime) -> dict[str, Any]:
    return {
        "status": status_after(ToolCallDecision.EXPIRED),
        "decision": ToolCallDecision.EXPIRED,
        "decided_at": now,
        "decided_via": EXPIRY,
        "settled_at": now,
    }


def _wanted(filters: ApprovalFilter) -> Q:
    wanted = Q()
    if filters.tenant_refs is not None:
        named = [tenant for tenant in filters.tenant_refs if tenant is not None]
        of_tenant = Q(thread__tenant_ref__in=named)
        wanted &= of_tenant | Q(thread__tenant_ref=None) if None in filters.tenant_refs else of_tenant
    if filters.thread_id is not None:
        wanted &= Q(thread_id=filters.thread_id)
    if filters.actor_ref is not None:
        wanted &= Q(thread__actor_ref=filters.actor_ref)
    if filters.tool_name is not None:
        wanted &= Q(tool_name=filters.tool_name)
    return wanted


def with_cards(using: str, thread_id: str, messages: Iterable[MessageValue]) -> tuple[MessageValue, ...]:
    """The messages with the cards of their calls that asked for a person."""
    rows_asked = ToolCall.objects.using(using).filter(thread_id=thread_id).exclude(approver=None).order_by("id")
    asked = [rows.tool_call(row) for row in rows_asked.values(*rows.TOOL_CALL)]
    proposals = cards_of(using, [call.proposal_id for call in asked if call.proposal_id])
    cards: dict[str, list[dict[str, Any]]] = {}
    for call in asked:
        cards.setdefault(call.message_id, []).append(approval_card(call, proposals.get(call.proposal_id or "")))
    return tuple(replace(message, approvals=cards.get(message.id)) for message in messages)
