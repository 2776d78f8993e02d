"""What comes out of the store: frozen values, never rows. JSON parts are plain lists and dicts in their wire shape.

Whoever changes such a list changes nothing that is stored. Absent optional values are None.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.domain.actor import Actor, Owner

Json = Any
JsonList = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSummary:
    """A thread as lists show it; `last_message_preview` is the first 120 characters of its last message."""

    id: str
    actor_ref: str
    tenant_ref: str | None
    title: str
    transient: bool
    default_agent: str | None
    model: str | None
    persona: str | None
    external_id: str | None
    active_run_id: str | None
    last_message_preview: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A stored message with every field. `approvals` is filled by `get_thread` alone."""

    id: str
    thread_id: str
    seq: int
    role: str
    content: str
    created_at: datetime
    tool_calls: JsonList | None = None
    tool_results: JsonList | None = None
    attachments: JsonList | None = None
    follow_ups: list[str] | None = None
    usage: dict[str, Any] | None = None
    agent_name: str | None = None
    persona: str | None = None
    run_id: str | None = None
    reasoning: str | None = None
    reasoning_ms: int | None = None
    ui: JsonList | None = None
    provider_state: str | None = None
    feedback: dict[str, Any] | None = None
    action_proposal_outcome: dict[str, Any] | None = None
    approvals: JsonList | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadDetail:
    summary: ThreadSummary
    messages: tuple[Message, ...]  # oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMessage:
    """What a turn reads of a message, and nothing more (spec 02 §4.1)."""

    id: str
    seq: int
    role: str
    content: str
    created_at: datetime
    agent_name: str | None = None
    tool_calls: JsonList | None = None
    tool_results: JsonList | None = None
    attachments: JsonList | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """The newest messages of a thread, oldest first, and what is true of the whole thread."""

    title: str
    default_agent: str | None
    has_assistant_message: bool  # over the whole thread, not only these messages
    has_more: bool  # older messages exist below the page
    messages: tuple[TurnMessage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadScope:
    """Whose a thread is; deleted threads have one too."""

    owner: Owner
    deleted: bool
    transient: bool
    default_agent: str | None  # the three pins, read with the owner so that admission costs one statement
    model: str | None
    persona: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallApproval:
    """What decides whether a call may be decided."""

    id: str
    status: str
    approver: str | None
    four_eyes: bool
    expires_at: datetime | None
    decision: str | None
    proposal_id: str | None
    run_id: str | None
    thread_id: str
    tool_name: str
    scope: Owner  # the thread's actor and tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallOutcome:
    """How a call ended, for the repair of a transcript that lacks its result."""

    id: str
    status: str
    output: Json
    error: str | None
    decision: str | None
    decision_reason: str | None
    proposal_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call's row, every field."""

    id: str
    provider_call_id: str
    message_id: str
    thread_id: str
    run_id: str | None
    actor_ref: str
    tenant_ref: str | None
    agent_name: str | None
    tool_name: str
    tool_type: str
    input: Json
    output: Json
    status: str
    decision: str | None
    decided_at: datetime | None
    decided_via: str | None
    decision_reason: str | None
    answers: Json
    executed_by_ref: str | None
    approver: str | None
    four_eyes: bool
    confirmation: dict[str, Any] | None
    expires_at: datetime | None
    remember: bool
    proposal_id: str | None
    parent_call_id: str | None
    origin_call_id: str | None
    execution_ms: int | None
    error: str | None
    created_at: datetime
    executed_at: datetime | None
    settled_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run's row, every field. Times in ms are wall (`duration_ms`) and under a lease (`active_ms`)."""

    id: str
    thread_id: str
    actor: Actor
    agent_name: str | None
    model_id: str | None
    persona: str | None
    status: str
    trigger: str
    input: dict[str, Any]
    parent_run_id: str | None
    parent_call_id: str | None
    stream_run_id: str
    frame_base: int
    depth: int
    lease_owner: str | None
    lease_expires_at: datetime | None
    attempt: int
    recoveries: int
    dispatched_at: datetime | None
    effect_position: int | None
    effect_name: str | None
    cancel_requested_at: datetime | None
    prompt_hash: str | None
    retries: int
    created_at: datetime
    started_at: datetime | None
    settled_at: datetime | None
    duration_ms: int | None
    active_ms: int
    error_code: str | None
    error_message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """Whose a run is, finished ones too."""

    owner: Owner
    thread_id: str
    status: str
    stream_run_id: str
    attempt: int
    error_code: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLease:
    """The right to work on a run. `attempt` fences every write of its holder.

    `claimed_at`, `started_at` (the run's first claim) and `active_ms` (before this claim) save its holder a read when
    it renews, parks, releases or settles; where they are absent the store reads them.
    """

    run_id: str
    owner: str
    attempt: int
    seconds: int
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    active_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One recorded position of a run's journal; `payload` is what the first execution gave, after a JSON round trip."""

    position: int
    name: str
    payload: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run with its whole journal, read together."""

    run: Run
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEntry:
    """A ledger row. Money is integer nano-USD; `cost_nanos` None means unpriced, never free."""

    id: int
    thread_id: str
    run_id: str | None
    message_id: str | None
    actor_ref: str
    tenant_ref: str | None
    agent_name: str | None
    model_id: str
    purpose: str
    step_key: str | None
    input_tokens: int
    output_tokens: int
    cache_write_tokens: int | None
    cache_read_tokens: int | None
    cache_write_1h_tokens: int | None
    tokens_source: str
    reported_cost_nanos: int | None
    estimated_cost_nanos: int | None
    price_id: str | None
    cost_nanos: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotals:
    """Sums of ledger rows; costs of unpriced rows are not in them and are counted beside."""

    requests: int = 0
    used_tokens: int = 0
    cost_nanos: int = 0
    reported_cost_nanos: int = 0
    unpriced_requests: int = 0
    unpriced_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """A dated price in nano-USD per million tokens. A None cache price means that the next wider price applies."""

    id: str
    model_id: str
    input_per_million_nanos: int
    output_per_million_nanos: int
    cache_write_per_million_nanos: int | None = None
    cache_read_per_million_nanos: int | None = None
    cache_write_1h_per_million_nanos: int | None = None
    tiers: JsonList | None = None
    effective_from: datetime
    source: str
    created_by_ref: str | None = None
    note: str | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedFrame:
    """A frame of a stream as it was stored: `frame` is the JSON text, None on the terminal row."""

    seq: int
    frame: str | None
    error: dict[str, Any] | None = None

    @property
    def terminal(self) -> bool:
        return self.frame is None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyOutcome:
    """What a key was first used for; `outcome` is None while that request is still being admitted."""

    fingerprint: str
    thread_id: str | None
    run_id: str | None
    message_id: str | None
    outcome: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionAnswer:
    """`applied`, `unchanged`, `conflict`, `expired` or `not_found`; `run_id` is the run to wake."""

    status: str
    run_id: str | None = None
    decision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A call that waits for a person, as an inbox lists it."""

    tool_call: ToolCall
    thread_title: str
    owner: Owner
