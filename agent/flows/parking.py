"""A run that waits for a person leaves its worker: nothing is held but rows."""

from __future__ import annotations

from agent.domain.commands import ToolDecision
from agent.domain.runs import RunLease
from agent.domain.states import RunStatus, ToolCallDecision
from agent.errors import Cancelled, LeaseLost, Parked
from agent.store.base import AgentStore


def park(store: AgentStore, lease: RunLease, call_id: str) -> None:
    """Park the run (`Parked`); return when the call is decided already, or its time is over."""
    store.decide_tool_call(call_id, ToolDecision(decision=ToolCallDecision.EXPIRED, actor=None))
    if store.park_run(lease, [call_id]):
        raise Parked
    run = store.get_run(lease.run_id)
    if run is None or run.status != RunStatus.RUNNING or run.attempt != lease.attempt:
        raise LeaseLost
    if run.cancel_requested_at is not None:
        raise Cancelled
