"""What goes into the store: frozen values. In a patch, `UNSET` leaves a field alone and None clears it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from agent.domain.actor import Actor
from agent.domain.snapshots import Json, JsonList


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendMessage:
    """A message to append; the store gives it its `seq` and, where `id` is None, its id."""

    thread_id: str
    role: str
    content: str
    id: str | None = None
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
    action_proposal_outcome: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPatch:
    title: str | Unset = UNSET
    default_agent: str | None | Unset = UNSET
    model: str | None | Unset = UNSET
    persona: str | None | Unset = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordToolCall:
    """A new row of the tool-call ledger. A provider's id repeated within a run gets its suffix before it comes here."""

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
    status: str
    output: Json = None
    error: str | None = None
    approver: str | None = None
    four_eyes: bool = False
    confirmation: dict[str, Any] | None = None
    expires_at: datetime | None = None
    proposal_id: str | None = None
    parent_call_id: str | None = None
    executed_by_ref: str | None = None
    decision: str | None = None
    decided_via: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallPatch:
    status: str | Unset = UNSET
    output: Json | Unset = UNSET
    error: str | None | Unset = UNSET
    execution_ms: int | None | Unset = UNSET
    executed_by_ref: str | None | Unset = UNSET
    proposal_id: str | None | Unset = UNSET
    answers: Json | Unset = UNSET
    decision: str | Unset = UNSET  # of a proposed call, once its proposal was executed
    decided_via: str | Unset = UNSET
    remember: bool | Unset = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDecision:
    """`decision`: approved, rejected, expired, answered or skipped."""

    decision: str
    actor: Actor | None  # None = the server itself (expiry)
    via: str = "web"
    reason: str | None = None
    remember: bool = False
    answers: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFilter:
    tenant_refs: tuple[str | None, ...] | None = None  # None = all
    thread_id: str | None = None
    actor_ref: str | None = None
    tool_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveSummary:
    """The summary of a thread's messages up to `up_to_seq`, made under one history policy."""

    thread_id: str
    policy_fingerprint: str
    up_to_seq: int
    text: str
    model_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordUsage:
    """One model call for the ledger. The store prices it with the price in force now."""

    thread_id: str
    actor_ref: str
    model_id: str
    purpose: str
    run_id: str | None = None
    message_id: str | None = None
    tenant_ref: str | None = None
    agent_name: str | None = None
    step_key: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    tokens_source: str = "reported"
    reported_cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPrice:
    """A price to put in force at `effective_from` (None = now). Nano-USD per million tokens."""

    model_id: str
    input_per_million_nanos: int
    output_per_million_nanos: int
    cache_write_per_million_nanos: int | None = None
    cache_read_per_million_nanos: int | None = None
    cache_write_1h_per_million_nanos: int | None = None
    tiers: JsonList | None = None
    effective_from: datetime | None = None
    source: str = "api"
    created_by_ref: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run to admit; it is `queued`. `dispatched` marks it as handed over to a runner in the same write."""

    id: str
    thread_id: str
    actor: Actor
    input: dict[str, Any]
    agent_name: str | None = None
    model_id: str | None = None
    persona: str | None = None
    trigger: str = "send"
    parent_run_id: str | None = None
    parent_call_id: str | None = None
    stream_run_id: str | None = None  # None = its own id
    depth: int = 0
    dispatched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """What a run is known to be once its prompt was resolved."""

    prompt_hash: str
    agent_name: str | None
    model_id: str | None
    persona: str | None
    parent_run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The attempt marker: an effect that is about to touch the outside."""

    position: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run settles. `cancelled` carries no error."""

    status: str
    duration_ms: int | None = None
    error_code: str | None = None
    error_message: str | None = None
