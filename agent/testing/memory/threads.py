"""Threads in memory: capabilities `threads`, `thread_patch`, `default_agent_reader`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from agent.domain.actor import Actor, Owner
from agent.domain.commands import UNSET, ThreadPatch
from agent.domain.snapshots import ThreadScope, ThreadSummary
from agent.domain.text import clean_text
from agent.testing.memory.frames import remove_streams
from agent.testing.memory.state import State, ThreadRow
from agent.testing.memory.unit import unit
from agent.testing.memory.values import ID, NAME, exact, fitting

NEW_CHAT = "New chat"
TITLE_MAX = 255
PREVIEW = 120


class Threads(State):
    def summary(self, row: ThreadRow) -> ThreadSummary:
        """The row as lists show it."""
        last = self.messages_of_thread.last(row.id)
        return ThreadSummary(
            id=row.id,
            actor_ref=row.actor_ref,
            tenant_ref=row.tenant_ref,
            title=row.title,
            transient=row.transient,
            default_agent=row.default_agent,
            model=row.model,
            persona=row.persona,
            external_id=row.external_id,
            active_run_id=row.active_run_id,
            last_message_preview="" if last is None else self.messages[last].content[:PREVIEW],
            created_at=row.created_at,
            updated_at=row.updated_at,
        )

    @unit
    def thread_by_external_id(self, actor_ref: str, external_id: str) -> str | None:
        key = self.thread_of_external_id.first((actor_ref, external_id))
        return key if key is not None and self.live_thread(key) else None

    @unit
    def list_threads(self, actor: Actor, limit: int = 50) -> list[ThreadSummary]:
        rows = [self.threads[key] for key in self.threads_of_actor.keys(actor.ref)]
        shown = [row for row in rows if row.tenant_ref == actor.tenant_ref and _listed(row)]
        shown.sort(key=lambda row: row.id)
        shown.sort(key=lambda row: row.updated_at, reverse=True)
        return [self.summary(row) for row in shown[: max(limit, 0)]]

    @unit
    def soft_delete_thread(self, thread_id: str) -> None:
        if self.live_thread(thread_id):
            self._set(thread_id, deleted_at=self.clock())

    @unit
    def purge_thread(self, thread_id: str) -> bool:
        if thread_id not in self.threads:
            return False
        for call_id in self.calls_of_thread.keys(thread_id):
            self.calls.drop(call_id)
        for message_id in reversed(self.messages_of_thread.keys(thread_id)):
            self.messages.drop(message_id)
        for summary in self.summaries_of_thread.keys(thread_id):
            self.summaries.drop(summary)
        for message_id in self.queue_of_thread.keys(thread_id):
            self.queue.drop(message_id)
        runs = self.runs_of_thread.keys(thread_id)
        for run_id in runs:
            self.journals.drop(run_id)
        remove_streams(self, runs)
        self.threads.drop(thread_id)
        return True

    @unit
    def deleted_threads(self, before: datetime, limit: int = 100) -> list[str]:
        found = [
            (row.deleted_at, key)
            for key, row in self.threads.items()
            if row.active_run_id is None and row.deleted_at is not None and row.deleted_at < before
        ]
        return [key for _, key in sorted(found)[: max(limit, 0)]]

    @unit
    def set_title(self, thread_id: str, title: str) -> None:
        cleaned = thread_title(title)
        if self.live_thread(thread_id):
            self.touch(thread_id, title=cleaned)

    @unit
    def promote_thread(self, thread_id: str) -> None:
        row = self.live_thread(thread_id)
        if row and row.transient:
            self._set(thread_id, transient=False)

    @unit
    def owner_of_thread(self, thread_id: str) -> Owner | None:
        row = self.live_thread(thread_id)
        return Owner(row.actor_ref, row.tenant_ref) if row else None

    @unit
    def thread_scope(self, thread_id: str) -> ThreadScope | None:
        row = self.threads.get(thread_id)
        if row is None:
            return None
        return ThreadScope(
            owner=Owner(row.actor_ref, row.tenant_ref),
            deleted=row.deleted_at is not None,
            transient=row.transient,
            default_agent=row.default_agent,
            model=row.model,
            persona=row.persona,
        )

    @unit
    def claim_active_run(self, thread_id: str, run_id: str, replacing: str | None = None) -> bool:
        row = self.live_thread(thread_id)
        if row is None or row.active_run_id not in {None, run_id, replacing}:
            return False
        self._set(thread_id, active_run_id=exact("active_run_id", run_id, ID))
        return True

    @unit
    def release_active_run(self, thread_id: str, run_id: str, *, title: str | None = None) -> bool:
        row = self.threads.get(thread_id)
        changes: dict[str, Any] = {} if title is None else {"title": thread_title(title), "updated_at": self.clock()}
        if row is None:
            return False
        held = row.active_run_id == run_id
        if held:
            changes["active_run_id"] = None
        self._set(thread_id, **changes)
        return held

    @unit
    def active_run_for_thread(self, thread_id: str) -> str | None:
        row = self.live_thread(thread_id)
        return row.active_run_id if row else None

    @unit
    def set_active_run(self, thread_id: str, run_id: str | None) -> None:
        if self.live_thread(thread_id):
            self._set(thread_id, active_run_id=exact("active_run_id", run_id, ID))

    @unit
    def update_thread(self, thread_id: str, patch: ThreadPatch) -> ThreadSummary | None:
        changes: dict[str, Any] = {}
        if patch.title is not UNSET:
            changes["title"] = thread_title(patch.title)
        for name, pin in (("default_agent", patch.default_agent), ("model", patch.model), ("persona", patch.persona)):
            if pin is not UNSET:
                changes[name] = exact(name, pin, NAME)
        row = self.live_thread(thread_id)
        if row is None:
            return None
        return self.summary(self.touch(thread_id, **changes) if changes else row)

    @unit
    def default_agent_for_thread(self, thread_id: str) -> str | None:
        row = self.live_thread(thread_id)
        return row.default_agent if row else None

    @unit
    def model_for_thread(self, thread_id: str) -> str | None:
        row = self.live_thread(thread_id)
        return row.model if row else None

    @unit
    def persona_for_thread(self, thread_id: str) -> str | None:
        row = self.live_thread(thread_id)
        return row.persona if row else None

    def touch(self, thread_id: str, **changes: Any) -> ThreadRow:  # noqa: ANN401 - columns of a row
        """Change a row and the time of its last change."""
        return self._set(thread_id, updated_at=self.clock(), **changes)

    def _set(self, thread_id: str, *, updated_at: datetime | None = None, **changes: Any) -> ThreadRow:  # noqa: ANN401
        row = self.threads[thread_id]
        return self.threads.put(thread_id, replace(row, updated_at=updated_at or row.updated_at, **changes))


def thread_title(text: str) -> str:
    """A title as its column holds it."""
    return clean_text(fitting("title", text, TITLE_MAX))


def _listed(row: ThreadRow) -> bool:
    return row.deleted_at is None and not row.transient
