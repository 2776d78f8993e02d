"""The capability `tool_calls` in dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from agent.domain.actor import Owner
from agent.domain.commands import UNSET, ApprovalFilter, RecordToolCall, ToolCallPatch, ToolDecision
from agent.domain.decisions import EXPIRY, REASON_MAX, judge, status_after
from agent.domain.snapshots import (
    DecisionAnswer,
    Json,
    PendingApproval,
    ToolCall,
    ToolCallApproval,
    ToolCallOutcome,
)
from agent.domain.states import OPEN_TOOL_CALL, POSITIVE_DECISION, TOOL_CALL_MOVES, ToolCallDecision
from agent.domain.text import clean_cut
from agent.domain.tool_calls import column_call_id, settlement
from agent.errors import NotAllowed, NotFound
from tests.notebook.book import alone, ident, name, own, text
from tests.notebook.messages import Messages

JSON = {"input", "output", "answers", "confirmation"}
TEXTS = {"error", "decided_via"}
IDS = {"id", "run_id", "parent_call_id"}
NAMES = {"actor_ref", "tenant_ref", "agent_name", "tool_type", "executed_by_ref", "approver", "proposal_id", "status"}


class ToolCalls(Messages):
    def record_tool_call(self, call: RecordToolCall) -> str:
        with self.atomic():
            row = self._new_call(call)
            known = (
                one.id
                for one in self.calls.values()
                if one.run_id is not None and (one.run_id, one.provider_call_id) == (row.run_id, row.provider_call_id)
            )
            if (key := next(known, None)) is not None:
                return key
            if row.message_id not in self.messages:
                raise NotFound("There is no such message.")
            self.calls[row.id] = row
            return row.id

    def _new_call(self, call: RecordToolCall) -> ToolCall:
        now = self.clock()
        given = {field.name: _stored(field.name, getattr(call, field.name)) for field in fields(call)}
        times = settlement(call.status, now)
        blank = {field.name: None for field in fields(ToolCall)}
        own_columns = {
            "provider_call_id": column_call_id(call.provider_call_id),
            "tool_name": clean_cut(call.tool_name, 128),
            "decided_at": None if call.decision is None else now,
            "remember": False,
            "created_at": now,
            "executed_at": times.executed_at,
            "settled_at": times.settled_at,
        }
        return ToolCall(**{**blank, **given, **own_columns})

    @alone
    def update_tool_call(self, call_id: str, patch: ToolCallPatch) -> bool:
        given = {field.name: getattr(patch, field.name) for field in fields(patch)}
        changes = {column: _stored(column, value) for column, value in given.items() if value is not UNSET}
        call = self.calls.get(call_id)
        if call is None:
            return False
        if (status := changes.get("status")) is not None:
            stays = status == call.status and status in OPEN_TOOL_CALL
            if not stays and status not in TOOL_CALL_MOVES.get(call.status, ()):
                return False
            times = settlement(status, self.clock())
            changes |= {"executed_at": times.executed_at, "settled_at": times.settled_at}
        self.calls[call_id] = replace(call, **changes)
        return True

    @alone
    def get_tool_call(self, call_id: str) -> ToolCall | None:
        call = self.calls.get(call_id)
        return None if call is None else _shown(call)

    @alone
    def owner_of_tool_call(self, call_id: str) -> Owner | None:
        call = self.calls.get(call_id)
        return None if call is None else self._owner(call)

    def _owner(self, call: ToolCall) -> Owner:
        thread = self.threads[call.thread_id]
        return Owner(thread.actor_ref, thread.tenant_ref)

    @alone
    def run_for_tool_call(self, call_id: str) -> str | None:
        call = self.calls.get(call_id)
        return None if call is None else self._run_of(call)

    def _run_of(self, call: ToolCall) -> str | None:
        return call.run_id or self.threads[call.thread_id].active_run_id

    @alone
    def tool_call_approval(self, call_id: str) -> ToolCallApproval | None:
        call = self.calls.get(call_id)
        if call is None:
            return None
        told = {field.name: getattr(call, field.name) for field in fields(ToolCallApproval) if field.name != "scope"}
        return ToolCallApproval(**told, scope=self._owner(call))

    @alone
    def tool_call_input(self, call_id: str) -> Json:
        call = self.calls.get(call_id)
        return None if call is None else own(call.input)

    @alone
    def tool_call_outcomes(self, call_ids: Sequence[str]) -> dict[str, ToolCallOutcome]:
        found = [_shown(self.calls[key]) for key in call_ids if key in self.calls]
        names = [field.name for field in fields(ToolCallOutcome)]
        return {call.id: ToolCallOutcome(**{each: getattr(call, each) for each in names}) for call in found}

    @alone
    def remembered_approvals(self, thread_id: str, *, approver: str | None = None) -> set[str]:
        return {
            call.tool_name
            for call in self.calls.values()
            if call.thread_id == thread_id and call.remember and call.decision in POSITIVE_DECISION
            if approver in {None, call.approver}
        }

    @alone
    def fail_unsettled_tool_calls(self, run_id: str, error: str) -> int:
        left = [call for call in self.calls.values() if call.run_id == run_id and call.status in OPEN_TOOL_CALL]
        for call in left:
            self.calls[call.id] = replace(call, status="failed", error=text(error), settled_at=self.clock())
        return len(left)

    @alone
    def pending_approvals(self, limit: int, filters: ApprovalFilter | None = None) -> list[PendingApproval]:
        waiting = [call for call in self.calls.values() if _waits(call) and self._wanted(call, filters)]
        waiting.sort(key=lambda call: (call.created_at, call.id))
        return [
            PendingApproval(
                tool_call=_shown(call), thread_title=self.threads[call.thread_id].title, owner=self._owner(call)
            )
            for call in waiting[: max(limit, 0)]
        ]

    def _wanted(self, call: ToolCall, filters: ApprovalFilter | None) -> bool:
        wanted, owner = filters or ApprovalFilter(), self._owner(call)
        return (
            self.live(call.thread_id) is not None
            and (wanted.tenant_refs is None or owner.tenant_ref in wanted.tenant_refs)
            and wanted.thread_id in {None, call.thread_id}
            and wanted.actor_ref in {None, owner.ref}
            and wanted.tool_name in {None, call.tool_name}
        )

    @alone
    def decide_tool_call(self, call_id: str, decision: ToolDecision) -> DecisionAnswer:
        call = self.calls.get(call_id)
        if call is None or self.live(call.thread_id) is None:
            return DecisionAnswer(status="not_found")
        verdict = judge(
            decision.decision,
            status=call.status,
            decision=call.decision,
            expires_at=call.expires_at,
            now=self.clock(),
        )
        if verdict.write == ToolCallDecision.EXPIRED:
            call = self._expire(call, self.clock())
        elif verdict.write is not None:
            call = self._decide(call, verdict.write, decision)
        return DecisionAnswer(status=verdict.answer, run_id=self._run_of(call), decision=call.decision)

    def _decide(self, call: ToolCall, taken: ToolCallDecision, asked: ToolDecision) -> ToolCall:
        if call.four_eyes and asked.actor is not None and asked.actor.same_as(self._owner(call)):
            raise NotAllowed("Somebody else has to decide this.")
        now = self.clock()
        times = settlement(status_after(taken), now)
        decided = replace(
            call,
            status=status_after(taken).value,
            decision=taken.value,
            decided_at=now,
            decided_via=text(asked.via),
            decision_reason=None if asked.reason is None else (text(asked.reason) or "")[:REASON_MAX],
            executed_by_ref=None if asked.actor is None else asked.actor.ref,
            remember=asked.remember,
            answers=own(asked.answers),
            executed_at=times.executed_at,
            settled_at=times.settled_at,
        )
        self.calls[call.id] = decided
        return decided

    def _expire(self, call: ToolCall, now: datetime) -> ToolCall:
        expired = replace(
            call, status="expired", decision="expired", decided_at=now, decided_via=EXPIRY, settled_at=now
        )
        self.calls[call.id] = expired
        return expired

    @alone
    def expire_tool_calls(self, now: datetime, limit: int = 100) -> list[tuple[str, str | None]]:
        due = [(call.expires_at, call.id) for call in self.calls.values() if _waits(call) and call.expires_at]
        late = [key for at, key in sorted(due) if at <= now][: max(limit, 0)]
        return [(key, self._run_of(self._expire(self.calls[key], now))) for key in late]


def _waits(call: ToolCall) -> bool:
    return call.status == "pending_approval" and call.decision is None


def _stored(column: str, value: Any) -> Any:
    if column in JSON:
        return own(value)
    if column in TEXTS:
        return text(value)
    if column in IDS:
        return ident(value)
    if column in NAMES:
        return name(None if value is None else str(value))
    return value


def _shown(call: ToolCall) -> ToolCall:
    """The row with JSON of its own."""
    return replace(call, **{column: own(getattr(call, column)) for column in JSON})
