"""Decisions about blocking calls in memory: the part of capability `tool_calls` that moves a waiting call."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from agent.domain.commands import ToolDecision
from agent.domain.decisions import EXPIRY, REASON_MAX, judge, status_after
from agent.domain.snapshots import DecisionAnswer, ToolCall
from agent.domain.states import ToolCallDecision
from agent.domain.tool_calls import settlement
from agent.errors import NotAllowed
from agent.testing.memory.tool_calls import ToolCalls, awaits_decision
from agent.testing.memory.unit import unit
from agent.testing.memory.values import REF, cleaned, copied, exact, fitting


class Approvals(ToolCalls):
    @unit
    def decide_tool_call(self, call_id: str, decision: ToolDecision) -> DecisionAnswer:
        call = self.calls.get(call_id)
        if call is None or not self.live_thread(call.thread_id):
            return DecisionAnswer(status="not_found")
        verdict = judge(
            decision.decision,
            status=call.status,
            decision=call.decision,
            expires_at=call.expires_at,
            now=self.clock(),
        )
        if verdict.write is not None:
            call = self._write(call, verdict.write, decision)
        return DecisionAnswer(status=verdict.answer, run_id=self.run_of_call(call), decision=call.decision)

    def _write(self, call: ToolCall, taken: ToolCallDecision, asked: ToolDecision) -> ToolCall:
        if taken == ToolCallDecision.EXPIRED:
            return self._expire(call, self.clock())
        if call.four_eyes and asked.actor is not None and asked.actor.same_as(self.owner_of_call(call)):
            raise NotAllowed("Somebody else has to decide this.")
        now = self.clock()
        times = settlement(status_after(taken), now)
        reason = cleaned(asked.reason)
        decided = replace(
            call,
            status=status_after(taken).value,
            decision=taken.value,
            decided_at=now,
            decided_via=cleaned(fitting("decided_via", asked.via, 64)),
            decision_reason=None if reason is None else reason[:REASON_MAX],
            executed_by_ref=None if asked.actor is None else exact("executed_by_ref", asked.actor.ref, REF),
            remember=asked.remember,
            answers=copied(asked.answers),
            executed_at=times.executed_at,
            settled_at=times.settled_at,
        )
        return self.calls.put(call.id, decided)

    def _expire(self, call: ToolCall, now: datetime) -> ToolCall:
        expired = replace(
            call,
            status=status_after(ToolCallDecision.EXPIRED).value,
            decision=ToolCallDecision.EXPIRED.value,
            decided_at=now,
            decided_via=EXPIRY,
            settled_at=now,
        )
        return self.calls.put(call.id, expired)

    @unit
    def expire_tool_calls(self, now: datetime, limit: int = 100) -> list[tuple[str, str | None]]:
        due = [call for call in self.calls if awaits_decision(call) and call.expires_at and call.expires_at <= now]
        due.sort(key=lambda call: (call.expires_at, call.id))
        taken = due[: max(limit, 0)]
        for call in taken:
            self._expire(call, now)
        return [(call.id, self.run_of_call(call)) for call in taken]
