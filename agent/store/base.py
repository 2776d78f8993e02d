"""The promise of the store (spec 02), grouped by capability. The ORM keeps it in `orm/`, memory in `agent.testing`.

Rules for every method: synchronous; frozen values in and out, copied; absent optional values are None; unknown ids (a
soft-deleted thread is unknown unless a method says otherwise) answer None, False, 0 or an empty list. Rows are locked
in one order: thread, run, tool call, proposal.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from agent.store.conversations import (
    DefaultAgentReader,
    FeedbackStore,
    MessageStore,
    MessageUiStore,
    SummaryStore,
    ThreadPatchStore,
    ThreadStore,
    ThreadTurnReader,
    ToolCallStore,
)
from agent.store.erasure import ErasureStore
from agent.store.memories import MemoryStore
from agent.store.proposals import (
    ConfirmTokenStore,
    ProposalOutcomeStore,
    ProposalReplacementStore,
    ProposalStore,
    ProposalWorkerStore,
)
from agent.store.queue import QueueStore
from agent.store.work import AttachmentReferenceStore, FrameStore, IdempotencyStore, JournalStore, LedgerStore, RunStore


class UnitOfWork(Protocol):
    """What every store has, whatever its capabilities."""

    capabilities: frozenset[str]
    waits: bool  # whether its methods wait for a disk or a network; those that do not are called without a hop
    clock: Callable[[], datetime]  # aware, UTC; tests set it
    new_id: Callable[[], str]  # ids of rows that no caller names; tests set it

    def atomic(self) -> AbstractContextManager[None]:
        """All or nothing; nests (an inner block that raises undoes only itself)."""

    def on_commit(self, call: Callable[[], object]) -> None:
        """Call after the outermost commit (at once outside of a unit), never after a rollback."""


class AgentStore(
    UnitOfWork,
    ThreadStore,
    ThreadPatchStore,
    ThreadTurnReader,
    SummaryStore,
    DefaultAgentReader,
    MessageStore,
    MessageUiStore,
    FeedbackStore,
    ToolCallStore,
    LedgerStore,
    RunStore,
    JournalStore,
    QueueStore,
    FrameStore,
    IdempotencyStore,
    ProposalStore,
    ProposalReplacementStore,
    ProposalWorkerStore,
    ProposalOutcomeStore,
    ConfirmTokenStore,
    MemoryStore,
    ErasureStore,
    AttachmentReferenceStore,
    Protocol,
):
    """Every capability together: what `OrmStore` and `InMemoryStore` keep."""


CAPABILITIES: dict[str, type] = {
    "threads": ThreadStore,
    "thread_patch": ThreadPatchStore,
    "turn_reader": ThreadTurnReader,
    "summaries": SummaryStore,
    "default_agent_reader": DefaultAgentReader,
    "messages": MessageStore,
    "message_ui": MessageUiStore,
    "feedback": FeedbackStore,
    "tool_calls": ToolCallStore,
    "ledger": LedgerStore,
    "runs": RunStore,
    "journal": JournalStore,
    "queue": QueueStore,
    "frames": FrameStore,
    "idempotency": IdempotencyStore,
    "proposals": ProposalStore,
    "proposal_replacement": ProposalReplacementStore,
    "proposal_worker": ProposalWorkerStore,
    "proposal_outcomes": ProposalOutcomeStore,
    "confirm_tokens": ConfirmTokenStore,
    "memory": MemoryStore,
    "erasure": ErasureStore,
    "attachment_references": AttachmentReferenceStore,
}
REQUIRED = frozenset({"threads", "messages", "tool_calls", "ledger"})
