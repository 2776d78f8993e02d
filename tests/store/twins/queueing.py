"""Messages that wait for a thread."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from agent.domain.actor import Actor
from agent.domain.commands import UNSET
from agent.domain.queue import NewQueuedMessage, QueuedPatch, QueuePause
from agent.domain.snapshots import Json
from agent.store.queue import End
from tests.store.twins.machine import Twins, actors, json_values, limits, names, runs, texts

WAITING = [f"queued-{number}" for number in range(4)]
waiting = st.sampled_from([*WAITING, "nobody"])
pauses = st.sampled_from(
    [None, QueuePause(reason="cancelled", at="now"), QueuePause(reason="run_failed", at="then", message="a\x00")]
)
places = st.sampled_from([-1, 0, 1, 2, 99])


class Queueing(Twins):
    @initialize(thread=Twins.threads)
    def two_waiting_messages(self, thread: str) -> None:
        """Two messages that wait for one thread."""
        for message_id in WAITING[:2]:
            new = NewQueuedMessage(id=message_id, thread_id=thread, actor=Actor("ana"), content="later")
            self.both(lambda store, new=new: store.enqueue_message(new))  # type: ignore[misc]

    @rule(
        message=st.sampled_from([None, *WAITING]),
        thread=Twins.threads | st.just("nobody"),
        actor=actors,
        content=texts,
        context=json_values,
        attachments=st.sampled_from([None, [], [{"mediaId": "m"}]]),
        persona=names,
        at=st.sampled_from(["tail", "tail", "head"]),
        interrupt=st.booleans(),
        undo=st.sampled_from([False, False, True]),
    )
    def enqueue(
        self,
        message: str | None,
        thread: str,
        actor: Actor,
        content: str,
        context: Json,
        attachments: Json,
        persona: str | None,
        at: End,
        interrupt: bool,
        undo: bool,
    ) -> None:
        new = NewQueuedMessage(
            id=message,
            thread_id=thread,
            actor=actor,
            content=content,
            attachments=attachments,
            persona=persona,
            page_context=context,
            interrupt=interrupt,
        )
        self.both(lambda store: store.enqueue_message(new, at), undo=undo)

    @rule(
        message=waiting,
        content=st.just(UNSET) | texts,
        attachments=st.sampled_from([UNSET, None, [{"mediaId": "n"}]]),
        interrupt=st.sampled_from([UNSET, True, False]),
        undo=st.booleans(),
    )
    def edit_waiting(self, message: str, content: Json, attachments: Json, interrupt: Json, undo: bool) -> None:
        patch = QueuedPatch(content=content, attachments=attachments, interrupt=interrupt)
        self.both(lambda store: store.update_queued_message(message, patch), undo=undo)

    @rule(message=waiting, index=places, undo=st.booleans())
    def move_waiting(self, message: str, index: int, undo: bool) -> None:
        self.both(lambda store: store.move_queued_message(message, index), undo=undo)

    @rule(message=waiting, undo=st.booleans())
    def remove_waiting(self, message: str, undo: bool) -> None:
        self.both(lambda store: store.remove_queued_message(message), undo=undo)

    @rule(thread=Twins.threads | st.just("nobody"), undo=st.booleans())
    def clear(self, thread: str, undo: bool) -> None:
        self.both(lambda store: store.clear_queue(thread), undo=undo)

    @rule(thread=Twins.threads | st.just("nobody"), pause=pauses)
    def pause(self, thread: str, pause: QueuePause | None) -> None:
        self.both(lambda store: store.set_queue_pause(thread, pause))

    @rule(thread=Twins.threads | st.just("nobody"), run=runs, title=st.none() | texts)
    def hold(self, thread: str, run: str, title: str | None) -> None:
        self.both(lambda store: store.claim_in_turn(thread, run))
        self.both(lambda store: store.lock_thread(thread))
        self.both(lambda store: store.release_unless_waiting(thread, run, title=title))

    @rule(thread=Twins.threads, run=runs)
    def hold_in_turn(self, thread: str, run: str) -> None:
        self.both(lambda store: store.claim_in_turn(thread, run))

    @rule(limit=limits)
    def look_for_idle_queues(self, limit: int) -> None:
        self.both(lambda store: store.idle_queues(limit))

    def compare_everything(self) -> None:
        for thread in self.seen_threads:
            self.both(lambda store, key=thread: store.list_queue(key))  # type: ignore[misc]
            self.both(lambda store, key=thread: store.queue_pause(key))  # type: ignore[misc]
        for message in WAITING:
            self.both(lambda store, key=message: store.get_queued_message(key))  # type: ignore[misc]
        super().compare_everything()
