"""The tables of a store in memory, with the indexes its reads need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.domain.ids import new_id as default_id
from agent.domain.ledger import ModelPrice, UsageEntry
from agent.domain.memories import Memory
from agent.domain.queue import QueuedMessage, QueuePause
from agent.domain.runs import Run, Step
from agent.domain.snapshots import IdempotencyOutcome, Message, NumberedFrame, StoredSummary, ToolCall
from agent.testing.memory.unit import Index, Table, UnitOfWork


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRow:
    id: str
    external_id: str | None
    actor_ref: str
    tenant_ref: str | None
    title: str
    transient: bool
    active_run_id: str | None
    default_agent: str | None
    model: str | None
    persona: str | None
    queue_pause: QueuePause | None
    last_seq: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """An idempotency key of an actor."""

    outcome: IdempotencyOutcome
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnds:
    """The first and the last number of a run's frames, and when the last was written."""

    first: int
    last: int
    written_ms: int


def _now() -> datetime:
    return datetime.now(UTC)


class State(UnitOfWork):
    """Rows are frozen; the JSON inside them is never changed, and copied on its way in and out."""

    def __init__(
        self,
        *,
        clock: Callable[[], datetime] | None = None,
        new_id: Callable[[], str] | None = None,
        model_aliases: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.clock = clock or _now
        self.new_id = new_id or default_id
        self.model_aliases = dict(model_aliases or {})
        self._make_conversation()
        self._make_runs()
        self._make_ledger()
        self.proposals: Table[str, str] = Table(self._log)  # canonical snapshots
        self.memories: Table[str, Memory] = Table(self._log)
        self.memory_at = self.memories.index(lambda row: (row.scope, row.key))
        self.tokens: Table[str, int] = Table(self._log)  # used ones: when each expires, in epoch ms

    def _make_conversation(self) -> None:
        self.threads: Table[str, ThreadRow] = Table(self._log)
        self.threads_of_actor = self.threads.index(lambda row: row.actor_ref)
        self.thread_of_external_id = self.threads.index(lambda row: (row.actor_ref, row.external_id))
        self.threads_held: Index[str, ThreadRow] = self.threads.index(lambda row: row.active_run_id)
        self.messages: Table[str, Message] = Table(self._log)
        self.messages_of_thread = self.messages.index(lambda row: row.thread_id)
        self.message_at = self.messages.index(lambda row: (row.thread_id, row.seq))
        self.calls: Table[str, ToolCall] = Table(self._log)
        self.calls_of_thread = self.calls.index(lambda row: row.thread_id)
        self.calls_of_message = self.calls.index(lambda row: row.message_id)
        self.calls_of_run = self.calls.index(lambda row: row.run_id)
        self.call_of_provider = self.calls.index(lambda row: (row.run_id, row.provider_call_id))
        self.summaries: Table[tuple[str, str], StoredSummary] = Table(self._log)
        self.summaries_of_thread = self.summaries.index(lambda row: row.thread_id)
        self.queue: Table[str, QueuedMessage] = Table(self._log)
        self.queue_of_thread = self.queue.index(lambda row: row.thread_id)
        self.keys: Table[tuple[str, str], KeyRow] = Table(self._log)

    def _make_runs(self) -> None:
        self.run_rows: Table[str, Run] = Table(self._log)
        self.runs_of_thread = self.run_rows.index(lambda row: row.thread_id)
        self.runs_by_status = self.run_rows.index(lambda row: row.status)
        self.runs_of_call = self.run_rows.index(lambda row: row.parent_call_id)
        self.runs_of_parent = self.run_rows.index(lambda row: row.parent_run_id)
        self.journals: Table[str, tuple[Step, ...]] = Table(self._log)
        self.frames: Table[tuple[str, int], NumberedFrame] = Table(self._log)
        self.streams: Table[str, StreamEnds] = Table(self._log)

    def _make_ledger(self) -> None:
        self.usage: Table[int, UsageEntry] = Table(self._log)
        self.usage_of_actor = self.usage.index(lambda row: row.actor_ref)
        self.usage_by_run = self.usage.index(lambda row: row.run_id)
        self.usage_of_step = self.usage.index(lambda row: (row.run_id, row.step_key))
        self.usage_by_price = self.usage.index(lambda row: row.price_id)
        self.prices: Table[str, ModelPrice] = Table(self._log)
        self.prices_of_model = self.prices.index(lambda row: row.model_id)
        self.last_usage_id = 0

    def live_thread(self, thread_id: str) -> ThreadRow | None:
        """The thread, unless it is unknown or deleted."""
        row = self.threads.get(thread_id)
        return row if row is not None and row.deleted_at is None else None

    def in_seq(self, thread_id: str) -> list[Message]:
        """The messages of a thread, oldest first: numbers only rise, and the newest are dropped first."""
        return [self.messages[key] for key in self.messages_of_thread.keys(thread_id)]
