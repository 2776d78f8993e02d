"""The promise of the store about what was said: threads, messages, tool calls. One Protocol a capability."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol, TypedDict

from agent.domain.actor import Actor, Owner
from agent.domain.commands import (
    AppendMessage,
    ApprovalFilter,
    RecordToolCall,
    SaveSummary,
    ThreadPatch,
    ToolCallPatch,
    ToolDecision,
)
from agent.domain.snapshots import (
    DecisionAnswer,
    Json,
    JsonList,
    Message,
    PendingApproval,
    StoredSummary,
    ThreadDetail,
    ThreadPage,
    ThreadScope,
    ThreadSummary,
    ToolCall,
    ToolCallApproval,
    ToolCallOutcome,
)


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

    def deleted_threads(self, before: datetime, limit: int = 100) -> list[str]:
        """Threads that were soft-deleted before then and that no run holds, longest deleted first."""

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


class ThreadTurnQuery(TypedDict, total=False):
    """Which page of a thread: the newest `message_limit` (None = all) below `before_seq` (None = from the end)."""

    message_limit: int | None
    before_seq: int | None


class ThreadTurnReader(Protocol):
    """Capability `turn_reader`: what a turn needs of a thread, at a cost that does not grow with it."""

    def load_thread_for_turn(
        self, thread_id: str, *, message_limit: int | None = None, before_seq: int | None = None
    ) -> ThreadPage | None: ...


class SummaryStore(Protocol):
    """Capability `summaries`: what stands for the messages that a history policy has dropped."""

    def thread_summary(self, thread_id: str, policy_fingerprint: str) -> StoredSummary | None: ...

    def save_thread_summary(self, summary: SaveSummary) -> bool:
        """Keep it only over a lower `up_to_seq` of the same thread and policy; False, too, for an unknown thread."""


class DefaultAgentReader(Protocol):
    """Capability `default_agent_reader`."""

    def default_agent_for_thread(self, thread_id: str) -> str | None: ...
    def model_for_thread(self, thread_id: str) -> str | None: ...
    def persona_for_thread(self, thread_id: str) -> str | None: ...


class MessageStore(Protocol):
    """Capability `messages`."""

    def append_message(self, message: AppendMessage) -> Message: ...
    def set_message_tool_calls(self, message_id: str, calls: JsonList) -> None: ...
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
    def remembered_approvals(self, thread_id: str, *, approver: str | None = None) -> set[str]:
        """Tools whose approval is remembered in the thread; of calls that asked for `approver` alone, where given."""

    def fail_unsettled_tool_calls(self, run_id: str, error: str) -> int: ...
    def pending_approvals(self, limit: int, filters: ApprovalFilter | None = None) -> list[PendingApproval]: ...
