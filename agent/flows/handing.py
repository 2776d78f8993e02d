"""Handing a thread on: its next message starts by itself, or its queue pauses, or it is idle (spec 06 §5)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db import InterfaceError, OperationalError

from agent.domain import frames
from agent.domain.clock import wire_time
from agent.domain.model_calls import Frame
from agent.domain.queue import PauseReason, QueuedMessage, QueuePause, QueueState, ThreadHold
from agent.domain.redaction import redacted_trace
from agent.domain.runs import Run, RunScope
from agent.domain.states import RunStatus, RunTrigger
from agent.flows import events, quota
from agent.flows.failures import refusal
from agent.flows.outcomes import admit_after
from agent.flows.starts import Send, begin, check_names
from agent.store.base import AgentStore

HEADS = 8  # messages that may turn out to be gone before the thread is left idle

logger = logging.getLogger("agent.queue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """What became of a thread: its `queue` where messages waited for it, the run that holds it now, a new title."""

    queue: QueueState | None = None
    run_id: str | None = None
    title: str | None = None

    @property
    def frames(self) -> list[Frame]:
        """What the stream of the run before is told."""
        title = [] if self.title is None else [frames.title(self.title)]
        return title + ([] if self.queue is None else [frames.queue(self.queue.to_json(), self.run_id)])

    def to_json(self) -> dict[str, Any]:
        """As the end of a run records it."""
        queue = {} if self.queue is None else {"queue": self.queue.to_json()}
        return {"started": frames.started(self.run_id) if self.run_id else None, **queue}


class _Gone(Exception):
    """The message was removed meanwhile."""


def has_queue(store: AgentStore) -> bool:
    return "queue" in store.capabilities


def lock(store: AgentStore, thread_id: str) -> None:
    """Hold a thread's row before the rows of its runs: they are locked in one order."""
    if has_queue(store):
        store.lock_thread(thread_id)


def hand_on(
    store: AgentStore,
    run: Run,
    outcome: str = RunStatus.COMPLETED,
    *,
    message: str | None = None,
    title: str | None = None,
) -> Handed:
    """Hand on the thread of a run, in the unit that settles it; nothing for a thread that somebody else holds.

    The unit holds the thread's row, by `lock` or by a message that it appended; so no message slips in between.
    `message`: what people are shown of a failure.
    """
    if has_queue(store) and not run.depth:
        admit_after(store, run)
        if store.release_unless_waiting(run.thread_id, run.id, title=title):
            return Handed(title=title)
        hold = store.lock_thread(run.thread_id)
        if hold is not None and hold.run_id == run.id:
            if title is not None:
                store.set_title(run.thread_id, title)
            return replace(drain(store, run.thread_id, hold, outcome=outcome, message=message), title=title)
    # a child's thread, a deleted one, or another's: it lets go if it is held, and a title is kept whoever holds it
    store.release_active_run(run.thread_id, run.id, title=title)
    return Handed(title=title)


def drain(
    store: AgentStore,
    thread_id: str,
    hold: ThreadHold,
    *,
    outcome: str = RunStatus.COMPLETED,
    message: str | None = None,
) -> Handed:
    """Start the next message in the place of the holder; the thread is locked, and its holder is settled or dead."""
    waiting = store.list_queue(thread_id)
    pause = hold.pause or (_pause_after(store, outcome, waiting[0], message) if waiting else None)
    for place, head in enumerate(waiting[:HEADS]):
        pause = pause or _over_quota(store, head)
        if pause is not None:
            return _paused(store, thread_id, hold, waiting[place:], pause)
        try:
            started = _start(store, head, replacing=hold.run_id)
        except _Gone:
            continue
        except (OperationalError, InterfaceError):
            raise  # the unit is lost, and whoever finds the thread tries again
        except Exception as error:
            logger.warning("message %s could not start: %s", head.id, redacted_trace(error))
            failed = _pause(store, PauseReason.START_FAILED, refusal(error))
            return _paused(store, thread_id, hold, waiting[place:], failed)
        if not started:
            return Handed()
        events.thread_changed(store, thread_id, "queue")
        return Handed(queue=QueueState(items=tuple(waiting[place + 1 :]), paused=None), run_id=head.id)
    _let_go(store, thread_id, hold)
    return Handed(queue=QueueState(items=tuple(waiting[HEADS:]), paused=hold.pause) if waiting else None)


def state(store: AgentStore, thread_id: str) -> QueueState:
    """What waits now, and what holds it."""
    return QueueState(items=tuple(store.list_queue(thread_id)), paused=store.queue_pause(thread_id))


def started_run(store: AgentStore, message_id: str) -> RunScope | None:
    """The run of a message that waited, if it has started."""
    return store.run_scope(message_id)


def current_frame(store: AgentStore, thread_id: str) -> Frame | None:
    """The queue as it is now, for a stream whose worker was gone before it told; None = there is nothing to tell."""
    if not has_queue(store):
        return None
    now, holder = state(store, thread_id), store.active_run_for_thread(thread_id)
    run = None if holder is None else store.get_run(holder)
    started = run.id if run is not None and run.trigger == RunTrigger.QUEUE else None
    if not now.items and started is None:
        return None
    return frames.queue(now.to_json(), started)


def _start(store: AgentStore, head: QueuedMessage, *, replacing: str | None) -> bool:
    """Claim, remove, start: together or not at all, so that one that cannot start still waits under its own id."""
    with store.atomic():
        if not store.claim_active_run(head.thread_id, head.id, replacing=replacing):
            return False
        if not store.remove_queued_message(head.id):
            raise _Gone
        asked = check_names(
            store,
            head.actor,
            _send_of(head),
            run_id=head.id,
            trigger=RunTrigger.QUEUE,
            carried=head.attachments,
        )
        begin(store, asked)
    return True


def _send_of(head: QueuedMessage) -> Send:
    return Send(
        message=head.content,
        thread_id=head.thread_id,
        agent=head.agent_name,
        persona=head.persona,
        model=head.model,
        page_context=head.page_context,
        ui_capabilities=head.ui_capabilities,
        host_context=head.host_context,
    )


def _pause_after(store: AgentStore, outcome: str, head: QueuedMessage, message: str | None) -> QueuePause | None:
    if outcome == RunStatus.FAILED:
        return _pause(store, PauseReason.RUN_FAILED, message)
    if outcome == RunStatus.CANCELLED and not head.interrupt:
        return _pause(store, PauseReason.CANCELLED)
    return None


def _over_quota(store: AgentStore, head: QueuedMessage) -> QueuePause | None:
    """Failing to ask is no verdict; what the host's policy breaks in the database is taken back with it."""
    if not quota.is_limited():
        return None
    try:
        with store.atomic():
            over = quota.exceeded(head.actor)
    except Exception as error:
        logger.warning("the quota of message %s could not be asked: %s", head.id, redacted_trace(error))
        return None
    if over is None:
        return None
    store.on_commit(partial(events.quota_exceeded, store, head.actor, over.period, thread_id=head.thread_id))
    return _pause(store, PauseReason.QUOTA_EXCEEDED, over.message)


def _pause(store: AgentStore, reason: PauseReason, message: str | None = None) -> QueuePause:
    return QueuePause(reason=reason.value, message=message, at=wire_time(store.clock()))


def _paused(
    store: AgentStore, thread_id: str, hold: ThreadHold, waiting: Sequence[QueuedMessage], pause: QueuePause
) -> Handed:
    if pause != hold.pause:
        store.set_queue_pause(thread_id, pause)
        events.thread_changed(store, thread_id, "queue")
    _let_go(store, thread_id, hold)
    return Handed(queue=QueueState(items=tuple(waiting), paused=pause))


def _let_go(store: AgentStore, thread_id: str, hold: ThreadHold) -> None:
    if hold.run_id is not None:
        store.release_active_run(thread_id, hold.run_id)
