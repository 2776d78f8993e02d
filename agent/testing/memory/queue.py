"""Messages that wait, in memory: capability `queue`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent.domain.actor import Owner
from agent.domain.commands import UNSET
from agent.domain.queue import NewQueuedMessage, QueuedMessage, QueuedPatch, QueuePause, ThreadHold
from agent.domain.states import TERMINAL_RUN
from agent.domain.text import clean_text
from agent.errors import Conflict, NotFound
from agent.store.queue import End
from agent.testing.memory.threads import Threads
from agent.testing.memory.unit import unit
from agent.testing.memory.values import ID, NAME, copied, exact, listed

_JSON = ("attachments", "page_context", "ui_capabilities", "host_context")


class Queue(Threads):
    @unit
    def enqueue_message(self, message: NewQueuedMessage, at: End = "tail") -> QueuedMessage:
        row = self._new_queued(message)
        if self.live_thread(message.thread_id) is None:
            raise NotFound("There is no such thread.")
        if row.id in self.queue:
            raise Conflict("A message of this id waits already.")
        order = self._in_order(message.thread_id)
        if order:
            row = replace(row, position=order[0].position - 1 if at == "head" else order[-1].position + 1)
        return _shown(self.queue.put(row.id, row))

    def _new_queued(self, message: NewQueuedMessage) -> QueuedMessage:
        now = self.clock()
        return QueuedMessage(
            id=self.new_id() if message.id is None else exact("id", message.id, ID),
            thread_id=exact("thread_id", message.thread_id, ID),
            actor=message.actor,
            content=clean_text(message.content),
            attachments=listed(message.attachments),
            agent_name=exact("agent_name", message.agent_name, NAME),
            persona=exact("persona", message.persona, NAME),
            model=exact("model", message.model, NAME),
            page_context=copied(message.page_context),
            ui_capabilities=copied(message.ui_capabilities),
            host_context=copied(message.host_context),
            interrupt=message.interrupt,
            position=0,
            created_at=now,
            updated_at=now,
        )

    @unit
    def list_queue(self, thread_id: str) -> list[QueuedMessage]:
        return [_shown(row) for row in self._in_order(thread_id)] if self.live_thread(thread_id) else []

    @unit
    def get_queued_message(self, message_id: str) -> QueuedMessage | None:
        row = self._waiting(message_id)
        return None if row is None else _shown(row)

    @unit
    def update_queued_message(self, message_id: str, patch: QueuedPatch) -> QueuedMessage | None:
        changes: dict[str, Any] = {}
        if patch.content is not UNSET:
            changes["content"] = clean_text(patch.content)
        if patch.attachments is not UNSET:
            changes["attachments"] = listed(patch.attachments)
        if patch.interrupt is not UNSET:
            changes["interrupt"] = patch.interrupt
        row = self._waiting(message_id)
        if row is None:
            return None
        return _shown(self.queue.put(row.id, replace(row, updated_at=self.clock(), **changes)) if changes else row)

    @unit
    def move_queued_message(self, message_id: str, index: int) -> bool:
        row = self._waiting(message_id)
        if row is None:
            return False
        order = [one for one in self._in_order(row.thread_id) if one.id != message_id]
        order.insert(max(index, 0), row)
        for place, one in enumerate(order):
            self.queue.put(one.id, replace(one, position=place))
        return True

    @unit
    def remove_queued_message(self, message_id: str) -> bool:
        if self._waiting(message_id) is None:
            return False
        self.queue.drop(message_id)
        return True

    @unit
    def clear_queue(self, thread_id: str) -> int:
        gone = self.queue_of_thread.keys(thread_id) if self.live_thread(thread_id) else []
        for message_id in gone:
            self.queue.drop(message_id)
        return len(gone)

    @unit
    def queue_pause(self, thread_id: str) -> QueuePause | None:
        row = self.live_thread(thread_id)
        return row.queue_pause if row else None

    @unit
    def set_queue_pause(self, thread_id: str, pause: QueuePause | None) -> None:
        if self.live_thread(thread_id):
            self._set(thread_id, queue_pause=pause)

    @unit
    def lock_thread(self, thread_id: str) -> ThreadHold | None:
        row = self.live_thread(thread_id)
        if row is None:
            return None
        owner = Owner(row.actor_ref, row.tenant_ref)
        return ThreadHold(owner=owner, run_id=row.active_run_id, pause=row.queue_pause)

    @unit
    def claim_in_turn(self, thread_id: str, run_id: str) -> bool:
        row = self.live_thread(thread_id)
        if row is None or (row.queue_pause is None and self.queue_of_thread.first(thread_id) is not None):
            return False
        return self.claim_active_run(thread_id, run_id)

    @unit
    def release_unless_waiting(self, thread_id: str, run_id: str, *, title: str | None = None) -> bool:
        row = self.threads.get(thread_id)
        if row is None or row.active_run_id != run_id or self.queue_of_thread.first(thread_id) is not None:
            return False
        return self.release_active_run(thread_id, run_id, title=title)

    @unit
    def idle_queues(self, limit: int) -> list[str]:
        ready = {row.thread_id for row in self.queue if self._may_start(row.thread_id)}
        return sorted(ready)[: max(limit, 0)]

    def _may_start(self, thread_id: str) -> bool:
        row = self.live_thread(thread_id)
        if row is None or row.queue_pause is not None:
            return False
        holder = None if row.active_run_id is None else self.run_rows.get(row.active_run_id)
        return holder is None or holder.status in TERMINAL_RUN

    def _waiting(self, message_id: str) -> QueuedMessage | None:
        row = self.queue.get(message_id)
        return row if row is not None and self.live_thread(row.thread_id) else None

    def _in_order(self, thread_id: str) -> list[QueuedMessage]:
        waiting = [self.queue[key] for key in self.queue_of_thread.keys(thread_id)]
        return sorted(waiting, key=lambda row: (row.position, row.id))


def _shown(row: QueuedMessage) -> QueuedMessage:
    """The row with JSON of its own."""
    return replace(row, **{name: copied(getattr(row, name)) for name in _JSON})
