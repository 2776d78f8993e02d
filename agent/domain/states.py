"""The words of every state column, and which moves between them exist."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar

from agent.errors import IllegalMove

S = TypeVar("S", bound=str)


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunTrigger(StrEnum):
    SEND = "send"
    QUEUE = "queue"
    DELEGATE = "delegate"
    DETACHED = "detached"


class MessageRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class ToolType(StrEnum):
    """How a call is stored; the kinds `agent`, `skill` and `memory` are reads, `ask` is an action."""

    READ = "read"
    ACTION = "action"


class ToolCallStatus(StrEnum):
    RUNNING = "running"  # recorded, nobody has to decide, not settled yet
    AUTO_EXECUTED = "auto_executed"  # ran without approval
    PENDING_APPROVAL = "pending_approval"
    EXECUTED = "executed"  # ran after approval
    REJECTED = "rejected"
    FAILED = "failed"
    EXPIRED = "expired"
    PROPOSED = "proposed"


class ToolCallDecision(StrEnum):
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    ANSWERED = "answered"
    SKIPPED = "skipped"
    REMEMBERED = "remembered"


class UsagePurpose(StrEnum):
    CHAT = "chat"
    FOLLOW_UPS = "follow_ups"
    HISTORY_SUMMARY = "history_summary"
    STRUCTURED_OUTPUT = "structured_output"


class TokensSource(StrEnum):
    REPORTED = "reported"
    ESTIMATED = "estimated"
    MISSING = "missing"


class Decision(StrEnum):
    """What was decided about an action proposal."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"


class ExecutionStatus(StrEnum):
    """How far an approved proposal is; it has none before the approval."""

    QUEUED = "queued"
    EXECUTING = "executing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


class DeliveryStatus(StrEnum):
    """How far a proposal's outcome is on its way into the thread; it has none before there is an outcome."""

    PENDING = "pending"
    ADMITTING = "admitting"
    DELIVERED = "delivered"
    DISCARDED = "discarded"
    NONE = "none"


class ApprovalMode(StrEnum):
    """What waits for a person: the turn, or a proposal that a worker carries out later."""

    BLOCKING = "blocking"
    INDEPENDENT = "independent"


class MemoryAuthor(StrEnum):
    AGENT = "agent"
    HUMAN = "human"


class StagingStatus(StrEnum):
    UPLOADING = "uploading"
    STAGED = "staged"


TERMINAL_RUN: Final = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})
OPEN_RUN: Final = frozenset(RunStatus) - TERMINAL_RUN

OPEN_TOOL_CALL: Final = frozenset({ToolCallStatus.RUNNING, ToolCallStatus.PENDING_APPROVAL})
TERMINAL_TOOL_CALL: Final = frozenset(ToolCallStatus) - OPEN_TOOL_CALL
EXECUTED_TOOL_CALL: Final = frozenset({ToolCallStatus.EXECUTED, ToolCallStatus.AUTO_EXECUTED})

POSITIVE_DECISION: Final = frozenset(
    {ToolCallDecision.APPROVED, ToolCallDecision.ANSWERED, ToolCallDecision.REMEMBERED}
)

RUN_MOVES: Final[Mapping[str, frozenset[RunStatus]]] = {
    RunStatus.QUEUED: frozenset({RunStatus.RUNNING}) | TERMINAL_RUN,
    RunStatus.RUNNING: frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING}) | TERMINAL_RUN,
    RunStatus.WAITING: frozenset({RunStatus.QUEUED}) | TERMINAL_RUN,
}

TOOL_CALL_MOVES: Final[Mapping[str, frozenset[ToolCallStatus]]] = {
    ToolCallStatus.RUNNING: EXECUTED_TOOL_CALL | {ToolCallStatus.FAILED},  # `executed` by a remembered approval
    ToolCallStatus.PENDING_APPROVAL: frozenset(
        {ToolCallStatus.EXECUTED, ToolCallStatus.REJECTED, ToolCallStatus.EXPIRED, ToolCallStatus.FAILED}
    ),
}

PROPOSAL_MOVES: Final[Mapping[str, frozenset[Decision]]] = {
    Decision.PENDING: frozenset(Decision) - {Decision.PENDING},
}

EXECUTION_MOVES: Final[Mapping[str, frozenset[ExecutionStatus]]] = {
    ExecutionStatus.QUEUED: frozenset({ExecutionStatus.EXECUTING}),
    ExecutionStatus.EXECUTING: frozenset(ExecutionStatus) - {ExecutionStatus.QUEUED},  # itself: a lapsed lease
    ExecutionStatus.UNKNOWN: frozenset({ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED, ExecutionStatus.QUEUED}),
}

DELIVERY_MOVES: Final[Mapping[str, frozenset[DeliveryStatus]]] = {
    DeliveryStatus.PENDING: frozenset({DeliveryStatus.ADMITTING, DeliveryStatus.DELIVERED}),
    DeliveryStatus.ADMITTING: frozenset(DeliveryStatus) - {DeliveryStatus.NONE},  # itself: a lapsed lease
}


def check_move(moves: Mapping[str, frozenset[S]], seen: str, new: S) -> None:
    """Refuse a move that the table does not have; what is not in the table is final."""
    if new not in moves.get(seen, frozenset()):
        raise IllegalMove(f"There is no way from {seen} to {new}.")
