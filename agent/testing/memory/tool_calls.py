"""Tool calls in memory: capability `tool_calls`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from agent.domain.actor import Owner
from agent.domain.commands import UNSET, ApprovalFilter, RecordToolCall, ToolCallPatch
from agent.domain.snapshots import Json, PendingApproval, ToolCall, ToolCallApproval, ToolCallOutcome
from agent.domain.states import (
    OPEN_TOOL_CALL,
    POSITIVE_DECISION,
    TOOL_CALL_MOVES,
    ToolCallStatus,
)
from agent.domain.text import clean_cut
from agent.domain.tool_calls import column_call_id, settlement
from agent.errors import NotFound
from agent.testing.memory.state import State
from agent.testing.memory.unit import unit
from agent.testing.memory.values import ID, NAME, REF, WORD, cleaned, copied, exact, fitting

_JSON = {"output", "answers"}


class ToolCalls(State):
    @unit
    def record_tool_call(self, call: RecordToolCall) -> str:
        row = _new_call(call, now=self.clock())
        known = None if row.run_id is None else self.call_of_provider.first((row.run_id, row.provider_call_id))
        if known is not None:
            return known
        if row.message_id not in self.messages:
            raise NotFound("There is no such message.")
        return self.calls.put(row.id, row).id

    @unit
    def update_tool_call(self, call_id: str, patch: ToolCallPatch) -> bool:
        given = {field.name: getattr(patch, field.name) for field in fields(patch)}
        changes = {name: _stored(name, value) for name, value in given.items() if value is not UNSET}
        call = self.calls.get(call_id)
        if call is None:
            return False
        status = changes.get("status")
        if status is not None:
            if not _may_become(call.status, status):
                return False
            times = settlement(status, self.clock())
            changes |= {"executed_at": times.executed_at, "settled_at": times.settled_at}
        self.calls.put(call_id, replace(call, **changes))
        return True

    @unit
    def get_tool_call(self, call_id: str) -> ToolCall | None:
        call = self.calls.get(call_id)
        return _shown(call) if call else None

    @unit
    def owner_of_tool_call(self, call_id: str) -> Owner | None:
        call = self.calls.get(call_id)
        return self.owner_of_call(call) if call else None

    def owner_of_call(self, call: ToolCall) -> Owner:
        """Whose thread it is in, deleted or not."""
        thread = self.threads[call.thread_id]
        return Owner(thread.actor_ref, thread.tenant_ref)

    @unit
    def run_for_tool_call(self, call_id: str) -> str | None:
        call = self.calls.get(call_id)
        return self.run_of_call(call) if call else None

    def run_of_call(self, call: ToolCall) -> str | None:
        """Its own run first, so that a delegate's call reaches the child."""
        return call.run_id or self.threads[call.thread_id].active_run_id

    @unit
    def tool_call_approval(self, call_id: str) -> ToolCallApproval | None:
        call = self.calls.get(call_id)
        if call is None:
            return None
        return ToolCallApproval(
            id=call.id,
            status=call.status,
            approver=call.approver,
            four_eyes=call.four_eyes,
            expires_at=call.expires_at,
            decision=call.decision,
            proposal_id=call.proposal_id,
            run_id=call.run_id,
            thread_id=call.thread_id,
            tool_name=call.tool_name,
            scope=self.owner_of_call(call),
        )

    @unit
    def tool_call_input(self, call_id: str) -> Json:
        call = self.calls.get(call_id)
        return copied(call.input) if call else None

    @unit
    def tool_call_outcomes(self, call_ids: Sequence[str]) -> dict[str, ToolCallOutcome]:
        calls = [self.calls[key] for key in call_ids if key in self.calls]
        return {call.id: _outcome(call) for call in calls}

    @unit
    def remembered_approvals(self, thread_id: str, *, approver: str | None = None) -> set[str]:
        calls = [self.calls[key] for key in self.calls_of_thread.keys(thread_id)]
        return {
            call.tool_name
            for call in calls
            if call.remember and call.decision in POSITIVE_DECISION
            if approver is None or call.approver == approver
        }

    @unit
    def fail_unsettled_tool_calls(self, run_id: str, error: str) -> int:
        calls = [self.calls[key] for key in self.calls_of_run.keys(run_id)]
        unsettled = [call for call in calls if call.status in OPEN_TOOL_CALL]
        for call in unsettled:
            failed = replace(call, status=ToolCallStatus.FAILED.value, error=cleaned(error), settled_at=self.clock())
            self.calls.put(call.id, failed)
        return len(unsettled)

    @unit
    def pending_approvals(self, limit: int, filters: ApprovalFilter | None = None) -> list[PendingApproval]:
        wanted = filters or ApprovalFilter()
        calls = [call for call in self.calls if awaits_decision(call) and self._in_scope(call, wanted)]
        calls.sort(key=lambda call: (call.created_at, call.id))
        return [
            PendingApproval(
                tool_call=_shown(call),
                thread_title=self.threads[call.thread_id].title,
                owner=self.owner_of_call(call),
            )
            for call in calls[: max(limit, 0)]
        ]

    def _in_scope(self, call: ToolCall, wanted: ApprovalFilter) -> bool:
        owner = self.owner_of_call(call)
        return (
            self.live_thread(call.thread_id) is not None
            and (wanted.tenant_refs is None or owner.tenant_ref in wanted.tenant_refs)
            and wanted.thread_id in {None, call.thread_id}
            and wanted.actor_ref in {None, owner.ref}
            and wanted.tool_name in {None, call.tool_name}
        )


def awaits_decision(call: ToolCall) -> bool:
    return call.status == ToolCallStatus.PENDING_APPROVAL and call.decision is None


def _may_become(status: str, new: str) -> bool:
    return new in TOOL_CALL_MOVES.get(status, ()) or (new == status and status in OPEN_TOOL_CALL)


def _stored(name: str, value: Any) -> Any:  # noqa: ANN401 - a column's value
    if name in _JSON:
        return copied(value)
    if name == "error":
        return cleaned(value)
    if name == "status":
        return exact(name, str(value), WORD)
    return exact(name, value, REF) if isinstance(value, str) else value


def _new_call(call: RecordToolCall, *, now: datetime) -> ToolCall:
    times = settlement(call.status, now)
    return ToolCall(
        id=exact("id", call.id, ID),
        provider_call_id=column_call_id(call.provider_call_id),
        message_id=call.message_id,
        thread_id=call.thread_id,
        run_id=exact("run_id", call.run_id, ID),
        actor_ref=exact("actor_ref", call.actor_ref, REF),
        tenant_ref=exact("tenant_ref", call.tenant_ref, REF),
        agent_name=exact("agent_name", call.agent_name, NAME),
        tool_name=clean_cut(call.tool_name, NAME),
        tool_type=exact("tool_type", call.tool_type, WORD),
        input=copied(call.input),
        output=copied(call.output),
        status=exact("status", str(call.status), WORD),
        decision=exact("decision", call.decision, WORD),
        decided_at=None if call.decision is None else now,
        decided_via=cleaned(fitting("decided_via", call.decided_via, 64)),
        decision_reason=None,
        answers=None,
        executed_by_ref=exact("executed_by_ref", call.executed_by_ref, REF),
        approver=exact("approver", call.approver, REF),
        four_eyes=call.four_eyes,
        confirmation=copied(call.confirmation),
        expires_at=call.expires_at,
        remember=False,
        proposal_id=exact("proposal_id", call.proposal_id, REF),
        parent_call_id=exact("parent_call_id", call.parent_call_id, ID),
        origin_call_id=None,
        execution_ms=None,
        error=cleaned(call.error),
        created_at=now,
        executed_at=times.executed_at,
        settled_at=times.settled_at,
    )


def _shown(call: ToolCall) -> ToolCall:
    """The row with JSON of its own."""
    return replace(
        call,
        input=copied(call.input),
        output=copied(call.output),
        answers=copied(call.answers),
        confirmation=copied(call.confirmation),
    )


def _outcome(call: ToolCall) -> ToolCallOutcome:
    return ToolCallOutcome(
        id=call.id,
        status=call.status,
        output=copied(call.output),
        error=call.error,
        decision=call.decision,
        decision_reason=call.decision_reason,
        proposal_id=call.proposal_id,
    )
