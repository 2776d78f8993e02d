"""The promise of the store about messages that wait. Capability `queue`."""

from __future__ import annotations

from typing import Literal, Protocol

from agent.domain.queue import NewQueuedMessage, QueuedMessage, QueuedPatch, QueuePause, ThreadHold

End = Literal["head", "tail"]


class QueueStore(Protocol):
    """Capability `queue`. Whoever changes a queue locks the row of its thread first, so that no message slips by."""

    def enqueue_message(self, message: NewQueuedMessage, at: End = "tail") -> QueuedMessage:
        """Add to the queue; an unknown thread raises `NotFound`, an id that waits already `Conflict`."""

    def list_queue(self, thread_id: str) -> list[QueuedMessage]: ...
    def get_queued_message(self, message_id: str) -> QueuedMessage | None: ...
    def update_queued_message(self, message_id: str, patch: QueuedPatch) -> QueuedMessage | None: ...

    def move_queued_message(self, message_id: str, index: int) -> bool:
        """Put a message at a place of its queue, counted from 0 and clamped to its ends."""

    def remove_queued_message(self, message_id: str) -> bool:
        """A true conditional delete: of several at once one gets True."""

    def clear_queue(self, thread_id: str) -> int: ...
    def queue_pause(self, thread_id: str) -> QueuePause | None: ...
    def set_queue_pause(self, thread_id: str, pause: QueuePause | None) -> None: ...

    def lock_thread(self, thread_id: str) -> ThreadHold | None:
        """Hold the thread's row until the unit ends, a deleted one's too; who holds it, and what holds its queue."""

    def claim_in_turn(self, thread_id: str, run_id: str) -> bool:
        """Win an idle thread, but not before messages that wait and may start; one statement."""

    def release_unless_waiting(self, thread_id: str, run_id: str, *, title: str | None = None) -> bool:
        """Free the thread if `run_id` holds it and no message waits, with its title if given; one statement.

        The caller's unit holds the thread's row, by `lock_thread` or a message that it appended: on a database whose
        statements see what was committed before they began, a message could slip in while this one waits for the row.
        """

    def idle_queues(self, limit: int) -> list[str]:
        """Threads whose queue is neither empty nor paused and that no open run holds, in the order of their ids."""
