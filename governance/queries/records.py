"""What queries about runs, calls, conversations and decisions answer (spec 08 §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from governance.queries.values import Spend, UsageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetrics:
    runs: int
    completed: int
    failed: int
    cancelled: int
    open: int
    success_rate: float | None
    retries: int
    duration_p50_ms: int | None
    duration_p95_ms: int | None
    active_p50_ms: int | None
    active_p95_ms: int | None
    percentiles: str  # exact or approximate


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRuns:
    agent_name: str | None
    runs: int
    completed: int
    failed: int
    cancelled: int
    success_rate: float | None
    retries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCount:
    error_code: str | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRuns:
    day: date
    runs: int
    completed: int
    failed: int
    cancelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """Every cut of a range's runs, of one and the same moment."""

    metrics: RunMetrics
    by_agent: Sequence[AgentRuns]
    errors: Sequence[ErrorCount]
    trend: Sequence[DayRuns]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    run_id: str
    thread_id: str
    actor_ref: str
    tenant_ref: str | None
    agent_name: str | None
    model_id: str | None
    status: str
    retries: int
    duration_ms: int | None
    active_ms: int
    error_code: str | None
    error_message: str | None
    prompt_hash: str | None
    parent_run_id: str | None
    started_at: datetime | None
    settled_at: datetime | None
    cost_nanos: int | None
    unpriced_requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStats:
    tool_name: str
    tool_type: str
    calls: int
    executed: int
    failed: int
    rejected: int
    expired: int
    pending: int
    failure_rate: float | None
    p50_execution_ms: int | None
    p95_execution_ms: int | None
    percentiles: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallRow:
    tool_call_id: str
    tool_name: str
    tool_type: str
    status: str
    thread_id: str
    run_id: str | None
    actor_ref: str
    agent_name: str | None
    decision: str | None
    decided_by: str | None
    decided_via: str | None
    execution_ms: int | None
    error: str | None
    created_at: datetime
    executed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRow:
    thread_id: str
    title: str | None
    actor_ref: str
    tenant_ref: str | None
    message_count: int
    updated_at: datetime
    last_run_status: str | None
    cost_nanos: int | None
    unpriced_requests: int
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRow:
    id: str
    seq: int
    role: str
    content: str | None
    truncated: bool
    agent_name: str | None
    run_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadHead:
    thread_id: str
    title: str | None
    actor_ref: str
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadDetail:
    thread: ThreadRow
    usage: Spend
    runs: Sequence[RunRow]
    run_total: int
    messages: Sequence[MessageRow]
    tool_calls: Mapping[str, int]  # by status


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    run: RunRow
    thread: ThreadHead | None  # None: it was deleted for good
    tool_calls: Sequence[ToolCallRow]
    children: Sequence[RunRow]
    usage: Sequence[UsageRow]
    total: Spend  # with children


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRow:
    """One that waits. `execution` is `unknown` where nobody knows what became of an approved one."""

    kind: str  # approval, question or proposal
    tool_call_id: str | None
    proposal_id: str | None = None
    tool_name: str
    input: Any
    confirmation: Mapping[str, Any] | None
    approver: str | None
    digest: str | None
    four_eyes: bool
    thread_id: str
    thread_title: str | None = None
    actor_ref: str
    tenant_ref: str | None
    agent_name: str | None
    requested_at: datetime
    expires_at: datetime | None
    run_id: str | None
    cost_nanos: int | None = None
    unpriced_requests: int = 0
    execution: str | None = None
    decidable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    kind: str
    id: str
    tool_name: str
    decision: str
    decided_by: str | None
    decided_via: str | None
    decided_at: datetime
    reason: str | None
    actor_ref: str
    execution_status: str | None
