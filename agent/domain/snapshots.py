"""What comes out of the store: frozen values, never rows. JSON parts are plain lists and dicts in their wire shape.

Whoever changes such a list changes nothing that is stored. Absent optional values are None.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.domain.actor import Owner

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
    """A stored message with every field. `approvals` and `run_status` are filled by `get_thread` alone."""

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
    run_status: str | None = None  # of the run that an assistant message is of, as long as its row is kept


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
class StoredSummary:
    """What stands for the messages up to `up_to_seq` that a history policy no longer sends, in a model's words."""

    id: str
    thread_id: str
    up_to_seq: int
    text: str
    policy_fingerprint: str
    model_id: str
    created_at: datetime
    updated_at: datetime


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
