"""Action proposals as values (spec 07 §7): what was asked for, which never changes, and what became of it.

`agent.domain.proposal_moves` has the moves between their states, `agent.domain.proposal_json` the canonical snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agent.domain.actor import Actor
from agent.domain.canonical import sha256_hex
from agent.domain.commands import UNSET, Unset
from agent.domain.snapshots import Json, JsonList
from agent.domain.states import Decision, DeliveryStatus, ExecutionStatus

SYSTEM = "system"  # who decides when nobody does
EXPIRY = "expiry"
REPLACEMENT = "replacement"


class Answer(StrEnum):
    """What a mutation of a proposal answers."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    CONFLICT = "conflict"
    EXPIRED = "expired"
    NOT_FOUND = "not_found"
    BUSY = "busy"  # of an admission: a run holds the thread
    DISCARDED = "discarded"  # of an admission: the thread is gone, or another's


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalScope:
    """Whose a proposal is. An empty tenant is a tenant, None is none; all three are compared exactly."""

    tenant_ref: str | None
    actor_ref: str
    thread_id: str

    @property
    def key(self) -> str:
        """The scope in one hash."""
        return sha256_hex([self.tenant_ref, self.actor_ref, self.thread_id])

    def is_of(self, actor: Actor) -> bool:
        """Whether this actor is the one who asked."""
        return (self.actor_ref, self.tenant_ref) == (actor.ref, actor.tenant_ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProposal:
    """What is asked for: written once, and never changed."""

    id: str
    scope: ProposalScope
    origin_run_id: str
    origin_message_id: str
    origin_tool_call_id: str
    tool_name: str
    input: Json  # normalised: what the person approves
    execution_context: dict[str, Any]  # who and where it is to run as; never roles, actor, tenant or host
    confirmation: dict[str, Any] | None
    approver: str
    idempotency_key: str
    four_eyes: bool = False
    on_lost: str = "retry"
    expires_at: int | None = None  # epoch ms
    preparation_input: Json | Unset = UNSET  # raw; None is a value
    replacement_key: str | None = None

    @property
    def group(self) -> str | None:
        """What at most one pending proposal may stand for: same requester, thread, tool and key (spec 07 §8)."""
        if self.replacement_key is None:
            return None
        scope = self.scope
        return sha256_hex(
            [scope.tenant_ref, scope.actor_ref, scope.thread_id, self.tool_name, self.replacement_key],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Who decided, over which channel, when by the server's clock (epoch ms), and why."""

    actor_ref: str
    via: str
    at: int
    reason: str | None = None
    remember: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Who commands a decision; `actor` None is the server itself."""

    actor: Actor | None
    via: str = "web"
    reason: str | None = None
    remember: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to work on a proposal until `expires_at` (epoch ms); the token fences whoever is late."""

    token: str
    expires_at: int
    worker_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How far an approved proposal is; `generation` counts its claims."""

    status: ExecutionStatus
    generation: int = 0
    lease: Lease | None = None
    result: Json | Unset = UNSET
    error: str | None = None
    settled_by: tuple[Audit, ...] = ()  # people who said what became of an unknown one


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """How an execution ended: `succeeded` with a result and what the tool wants shown, or `failed` with a sentence."""

    status: str
    result: Json | Unset = UNSET
    error: str | None = None
    text: str | None = None
    ui: JsonList | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the thread is told at the end."""

    id: str
    status: str  # succeeded, failed, rejected or expired
    at: int
    result: Json | Unset = UNSET
    error: str | None = None
    reason: str | None = None
    text: str | None = None  # the tool's own presentation
    ui: JsonList | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How far the outcome is on its way into the thread; `due_at` is since when it may be tried (epoch ms)."""

    status: DeliveryStatus
    generation: int = 0
    due_at: int | None = None
    lease: Lease | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The whole record. Absent parts are None."""

    asked: NewProposal
    created_at: int
    decision: Decision = Decision.PENDING
    audit: Audit | None = None
    execution: Execution | None = None
    outcome: Outcome | None = None
    delivery: Delivery | None = None
    superseded_by: str | None = None

    @property
    def id(self) -> str:
        return self.asked.id

    @property
    def scope(self) -> ProposalScope:
        return self.asked.scope

    @property
    def card(self) -> dict[str, Any]:
        """What a card of its call shows of the decision, and of the execution once there is one."""
        audit, execution = self.audit, self.execution
        return {
            "status": self.decision.value,
            "decidedBy": audit and audit.actor_ref,
            "decidedVia": audit and audit.via,
            "reason": audit and audit.reason,
            "execution": execution and execution.status.value,
        }

    @property
    def is_told(self) -> bool:
        """Whether its thread has the message of its outcome."""
        return self.delivery is not None and self.delivery.status is DeliveryStatus.DELIVERED

    @property
    def digest(self) -> str:
        """What a person was shown, in one hash (spec 07 §1)."""
        asked = self.asked
        return sha256_hex([asked.id, asked.tool_name, asked.input, asked.confirmation, asked.approver])


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalAnswer:
    """The answer to a mutation, and the proposal as it stands then; None where the caller may not see it."""

    status: Answer
    proposal: Proposal | None = None

    @property
    def applied(self) -> bool:
        return self.status == Answer.APPLIED


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalCursor:
    """The last proposal of a page."""

    created_at: int
    id: str


def proposal_id(run_id: str, call_id: str) -> str:
    """The one proposal that a call of a run can become."""
    return f"proposal-{sha256_hex([run_id, call_id])}"


def target_of(proposal_id: str | None) -> dict[str, Any] | None:
    """What a card is decided by, where that is not the call itself."""
    return None if proposal_id is None else {"kind": "proposal", "proposalId": proposal_id}
