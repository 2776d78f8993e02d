"""The promise of the store (spec 02), grouped by capability. The ORM keeps it in `orm/`, memory in `agent.testing`.

Rules for every method: synchronous; frozen values in and out, copied; absent optional values are None; unknown ids (a
soft-deleted thread is unknown unless a method says otherwise) answer None, False, 0 or an empty list. Rows are locked
in one order: thread, run, tool call, proposal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime, tzinfo
from typing import Any, Protocol

from agent.domain.actor import Actor, Owner
from agent.domain.commands import (
    AppendMessage,
    ApprovalFilter,
    Effect,
    NewPrice,
    NewRun,
    RecordToolCall,
    RecordUsage,
    RunEnd,
    RunStart,
    ThreadPatch,
    ToolCallPatch,
    ToolDecision,
)
from agent.domain.ledger import ModelPrice, UsageEntry, UsageTotals
from agent.domain.runs import OpenRun, Run, RunLease, RunScope, Step
from agent.domain.snapshots import (
    DecisionAnswer,
    IdempotencyOutcome,
    Json,
    JsonList,
    Message,
    NumberedFrame,
    PendingApproval,
    ThreadDetail,
    ThreadPage,
    ThreadScope,
    ThreadSummary,
    ToolCall,
    ToolCallApproval,
    ToolCallOutcome,
)


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


class ThreadStore(Protocol):
    """Capability `threads`."""

    def create_thread(
        self,
        *,
        actor: Actor,
        title: str | None = None,
        transient: bool = False,
        agent_name: str | None = None,
        persona: str | None = None,
        external_id: str | None = None,
        active_run_id: str | None = None,
        first_message: AppendMessage | None = None,
    ) -> ThreadSummary:
        """A new thread, held by `active_run_id` and with its first message if given (whose `thread_id` is ignored).

        A repeated external id answers the thread that has it, unchanged.
        """

    def get_thread(self, thread_id: str) -> ThreadDetail | None: ...
    def thread_by_external_id(self, actor_ref: str, external_id: str) -> str | None: ...
    def list_threads(self, actor: Actor, limit: int = 50) -> list[ThreadSummary]: ...
    def soft_delete_thread(self, thread_id: str) -> None: ...
    def purge_thread(self, thread_id: str) -> bool: ...
    def fork_thread(self, thread_id: str, from_message_id: str) -> ThreadSummary: ...
    def set_title(self, thread_id: str, title: str) -> None: ...
    def promote_thread(self, thread_id: str) -> None: ...
    def owner_of_thread(self, thread_id: str) -> Owner | None: ...
    def thread_scope(self, thread_id: str) -> ThreadScope | None: ...

    def claim_active_run(self, thread_id: str, run_id: str, replacing: str | None = None) -> bool:
        """Win the thread if it is free or held by `run_id` or by `replacing`; one guarded update."""

    def release_active_run(self, thread_id: str, run_id: str, *, title: str | None = None) -> bool:
        """Free the thread only if `run_id` still holds it; a title is set whoever holds it. One statement."""

    def active_run_for_thread(self, thread_id: str) -> str | None: ...
    def set_active_run(self, thread_id: str, run_id: str | None) -> None: ...


class ThreadPatchStore(Protocol):
    """Capability `thread_patch`."""

    def update_thread(self, thread_id: str, patch: ThreadPatch) -> ThreadSummary | None: ...


class ThreadTurnReader(Protocol):
    """Capability `turn_reader`: what a turn needs of a thread, at a cost that does not grow with it."""

    def load_thread_for_turn(
        self, thread_id: str, *, message_limit: int | None = None, before_seq: int | None = None
    ) -> ThreadPage | None: ...


class DefaultAgentReader(Protocol):
    """Capability `default_agent_reader`."""

    def default_agent_for_thread(self, thread_id: str) -> str | None: ...
    def model_for_thread(self, thread_id: str) -> str | None: ...
    def persona_for_thread(self, thread_id: str) -> str | None: ...


class MessageStore(Protocol):
    """Capability `messages`."""

    def append_message(self, message: AppendMessage) -> Message: ...
    def set_message_tool_results(self, message_id: str, results: JsonList) -> None: ...
    def set_message_follow_ups(self, message_id: str, items: list[str]) -> None: ...
    def truncate_from(self, thread_id: str, message_id: str) -> int: ...
    def truncate_after_last_user(self, thread_id: str) -> int | None: ...
    def messages_of_run(self, thread_id: str, run_id: str) -> list[Message] | None: ...


class MessageUiStore(Protocol):
    """Capability `message_ui`."""

    def set_message_ui(self, message_id: str, components: JsonList) -> None: ...


class FeedbackStore(Protocol):
    """Capability `feedback`."""

    def thread_of_message(self, message_id: str) -> str | None: ...

    def set_message_feedback(self, message_id: str, value: dict[str, Any] | None) -> bool:
        """Set or clear the feedback of an assistant message; False for another role or an unknown id."""


class ToolCallStore(Protocol):
    """Capability `tool_calls`."""

    def record_tool_call(self, call: RecordToolCall) -> str: ...
    def update_tool_call(self, call_id: str, patch: ToolCallPatch) -> bool: ...
    def get_tool_call(self, call_id: str) -> ToolCall | None: ...
    def owner_of_tool_call(self, call_id: str) -> Owner | None: ...
    def run_for_tool_call(self, call_id: str) -> str | None: ...
    def tool_call_approval(self, call_id: str) -> ToolCallApproval | None: ...
    def tool_call_input(self, call_id: str) -> Json: ...
    def tool_call_outcomes(self, call_ids: Sequence[str]) -> dict[str, ToolCallOutcome]: ...
    def decide_tool_call(self, call_id: str, decision: ToolDecision) -> DecisionAnswer: ...
    def expire_tool_calls(self, now: datetime, limit: int = 100) -> list[tuple[str, str | None]]: ...
    def remembered_approvals(self, thread_id: str) -> set[str]: ...
    def fail_unsettled_tool_calls(self, run_id: str, error: str) -> int: ...
    def pending_approvals(self, limit: int, filters: ApprovalFilter | None = None) -> list[PendingApproval]: ...


class LedgerStore(Protocol):
    """Capability `ledger`: append-only usage rows and dated prices. Money is integer nano-USD."""

    def record_usage(self, usage: RecordUsage) -> UsageEntry: ...
    def usage_between(self, actor_ref: str, start: datetime, end: datetime) -> UsageTotals: ...
    def quota_today(self, actor_ref: str, day: date, tz: tzinfo) -> UsageTotals: ...
    def price_in_force(self, model_id: str, at: datetime) -> ModelPrice | None: ...
    def list_current_prices(self) -> list[ModelPrice]: ...
    def price_history(self, model_id: str) -> list[ModelPrice]: ...
    def supersede_price(self, price: NewPrice) -> ModelPrice: ...
    def seed_prices(self, prices: Iterable[NewPrice]) -> int: ...
    def delete_price(self, price_id: str) -> bool: ...
    def unpriced_usage(self, start: datetime, end: datetime, limit: int) -> list[UsageEntry]: ...
    def reprice_usage(self, ids: Sequence[int], include_estimated: bool = False) -> int: ...
    def usage_of_run(self, run_id: str) -> list[UsageEntry]: ...


class RunStore(Protocol):
    """Capability `runs`. A lease is the right to work on a run; every write of its holder is guarded by it."""

    def create_run(self, run: NewRun, first_step: tuple[str, Json] | None = None) -> Run: ...
    def get_run(self, run_id: str) -> Run | None: ...
    def record_run_start(self, run_id: str, start: RunStart) -> bool: ...

    def record_run_end(
        self, run_id: str, end: RunEnd, *, lease: RunLease | None = None, steps: Sequence[Step] = ()
    ) -> bool:
        """Settle once, from a non-terminal status; under a lease only by its holder. `steps` are recorded with it.

        False when the lease was lost or the run is over: nothing was written. `duration_ms` None = settled - started.
        A `completed` end of a run whose cancel was requested meanwhile is refused (False) so that the caller can
        settle it as cancelled.
        """

    def bump_run_retries(self, run_id: str, count: int = 1) -> None: ...
    def claim_run(self, run_id: str, owner: str, lease_seconds: int) -> RunLease | None: ...
    def renew_run(self, lease: RunLease) -> bool: ...
    def park_run(self, lease: RunLease, call_ids: Sequence[str]) -> bool: ...
    def release_run(self, lease: RunLease) -> bool: ...
    def wake_run(self, run_id: str) -> bool: ...

    def request_cancel(self, run_id: str) -> str:
        """`requested`, `settle_now` (queued or waiting), `over` or `unknown`; the first time stays."""

    def lapsed_runs(self, now: datetime, limit: int, queued_for: int = 60) -> list[Run]: ...
    def mark_dispatched(self, run_ids: Sequence[str]) -> None: ...
    def owner_of_active_run(self, run_id: str) -> Owner | None: ...
    def run_scope(self, run_id: str) -> RunScope | None: ...


class JournalStore(Protocol):
    """Capability `journal`."""

    def open_run(self, run_id: str) -> OpenRun | None:
        """A run with its whole journal, in one statement."""

    def steps(self, run_id: str) -> list[Step]: ...

    def begin_effect(self, lease: RunLease, effect: Effect) -> bool:
        """Set the attempt marker; True when the same marker was there already. Raises `LeaseLost`."""

    def record_step(self, lease: RunLease, step: Step) -> None: ...

    def record_steps(
        self,
        lease: RunLease,
        steps: Sequence[Step],
        *,
        effect: Effect | None = None,
        start: RunStart | None = None,
    ) -> bool:
        """Record neighbouring steps in one insert, guarded by the lease: one update, one insert.

        Clears the attempt marker or sets it to `effect`; `start` fills what the run is known to be. Recoveries fall
        to 0. A taken position or another holder raises `LeaseLost`. Answers whether a cancel was requested (read in
        the same statement where the database can).
        """


class FrameStore(Protocol):
    """Capability `frames`: numbered rows of a run's stream, from 1 without gaps."""

    def append_frame(
        self, run_id: str, frame: str | None, error: dict[str, Any] | None = None, *, attempt: int | None = None
    ) -> int: ...

    def append_frames(self, run_id: str, frames: Sequence[str | None], *, attempt: int | None = None) -> int:
        """Append in one statement and answer the last number. A None is the terminal row of a run that did not fail.

        With `attempt`, refused (`LeaseLost`) once the run's attempt is a newer one.
        """

    def read_frames(self, run_id: str, after: int, limit: int = 500) -> list[NumberedFrame]: ...
    def has_frames(self, run_id: str) -> bool: ...
    def remove_frames(self, run_ids: Sequence[str]) -> int: ...
    def lapsed_streams(self, cutoff_ms: int, limit: int = 200) -> list[str]: ...
    def last_seq(self, run_id: str) -> int: ...


class IdempotencyStore(Protocol):
    """Capability `idempotency`."""

    def claim_idempotency_key(self, actor_ref: str, key: str, fingerprint: str) -> IdempotencyOutcome | None: ...

    def save_idempotency_outcome(
        self,
        actor_ref: str,
        key: str,
        *,
        thread_id: str | None,
        run_id: str | None,
        message_id: str | None,
        outcome: dict[str, Any],
    ) -> None: ...

    def find_idempotency_key(self, actor_ref: str, key: str) -> IdempotencyOutcome | None: ...
    def purge_idempotency_keys(self, before: datetime) -> int: ...


class AgentStore(
    UnitOfWork,
    ThreadStore,
    ThreadPatchStore,
    ThreadTurnReader,
    DefaultAgentReader,
    MessageStore,
    MessageUiStore,
    FeedbackStore,
    ToolCallStore,
    LedgerStore,
    RunStore,
    JournalStore,
    FrameStore,
    IdempotencyStore,
    Protocol,
):
    """Every capability together: what `OrmStore` and `InMemoryStore` keep."""


CAPABILITIES: dict[str, type] = {
    "threads": ThreadStore,
    "thread_patch": ThreadPatchStore,
    "turn_reader": ThreadTurnReader,
    "default_agent_reader": DefaultAgentReader,
    "messages": MessageStore,
    "message_ui": MessageUiStore,
    "feedback": FeedbackStore,
    "tool_calls": ToolCallStore,
    "ledger": LedgerStore,
    "runs": RunStore,
    "journal": JournalStore,
    "frames": FrameStore,
    "idempotency": IdempotencyStore,
}
REQUIRED = frozenset({"threads", "messages", "tool_calls", "ledger"})
