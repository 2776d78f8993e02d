"""What an owner does with the messages that wait, and the kick that starts one on an idle thread (spec 06)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from agent.domain.actor import Actor
from agent.domain.commands import UNSET, Unset
from agent.domain.queue import QueuedMessage, QueuedPatch, QueueState, ThreadHold
from agent.domain.snapshots import JsonList
from agent.domain.text import clean_text, is_blank
from agent.errors import Invalid, MessageGone, NotAllowed, NotFound, NotSupported
from agent.flows import attachments, events, handing
from agent.flows.cancel import request
from agent.flows.handing import Handed, drain, has_queue
from agent.flows.holders import freed, is_idle
from agent.flows.ownership import own_thread
from agent.flows.settlement import close_stream, settle_cancelled
from agent.store import get_store
from agent.store.base import AgentStore

EMPTY = QueueState(items=(), paused=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What changes of a waiting message; attachments None are dropped, a position above the last place is the last."""

    message: str | Unset = UNSET
    attachments: tuple[str, ...] | None | Unset = UNSET  # by media id
    position: int | Unset = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The queue after a move that may have started something, or asked the running answer to stop."""

    state: QueueState
    run_id: str | None = None
    interrupting: bool = False


def is_enabled() -> bool:
    """Whether messages can wait on this installation."""
    return has_queue(get_store())


def read(actor: Actor, thread_id: str) -> QueueState:
    """What waits in an own thread."""
    return handing.state(_own(actor, thread_id), thread_id)


def clear(actor: Actor, thread_id: str) -> QueueState:
    """Remove all that waits, and what held it."""
    store = _own(actor, thread_id)
    with store.atomic():
        store.clear_queue(thread_id)
        store.set_queue_pause(thread_id, None)
        return _changed(store, thread_id)


def resume(actor: Actor, thread_id: str) -> Moved:
    """Lift the pause; an idle thread goes on with its next message."""
    store = _own(actor, thread_id)
    with store.atomic():
        hold = _locked(store, thread_id)
        store.set_queue_pause(thread_id, None)
        handed = _drain_idle(store, thread_id, hold.run_id)
        return Moved(state=_changed(store, thread_id), run_id=handed.run_id)


def edit(actor: Actor, message_id: str, change: Edit) -> QueueState:
    """Change a message that still waits, or its place."""
    store = get_store()
    with store.atomic():
        message = _waiting(store, actor, message_id)
        _check(message, change)
        patch = QueuedPatch(
            content=change.message if change.message is UNSET else clean_text(change.message),
            attachments=_files(actor, change),
        )
        store.update_queued_message(message_id, patch)
        if change.position is not UNSET:
            store.move_queued_message(message_id, change.position)
        return _changed(store, message.thread_id)


def remove(actor: Actor, message_id: str) -> QueueState:
    """Remove a message that still waits."""
    store = get_store()
    with store.atomic():
        message = _waiting(store, actor, message_id)
        if not store.remove_queued_message(message_id):
            raise MessageGone
        return _changed(store, message.thread_id)


def interrupt(actor: Actor, message_id: str) -> Moved:
    """Answer a waiting message next: the running answer is asked to stop, an idle thread starts at once."""
    store = get_store()
    with store.atomic():
        message = _waiting(store, actor, message_id)
        flagged = store.update_queued_message(message_id, QueuedPatch(interrupt=True))
        if flagged is None or not flagged.interrupt:
            raise NotSupported  # such a store would answer it late, and would have stopped an answer for nothing
        store.move_queued_message(message_id, 0)
        return make_way(store, message.thread_id)


def make_way(store: AgentStore, thread_id: str) -> Moved:
    """Let the flagged head of a queue start as soon as it can, in the unit that flagged it."""
    hold = _locked(store, thread_id)
    store.set_queue_pause(thread_id, None)
    if is_idle(store, hold.run_id):
        interrupting = False
        _drain_idle(store, thread_id, hold.run_id)
    else:
        interrupting = hold.run_id is not None and _ask_to_stop(store, hold.run_id)
    holder = _locked(store, thread_id).run_id  # another one now: the message, or one that was flagged before it
    started = holder if holder != hold.run_id else None
    return Moved(state=_changed(store, thread_id), run_id=started, interrupting=interrupting)


def kick(thread_id: str) -> str | None:
    """Start the next message of an idle thread whose queue is not paused; the run that was started."""
    store = get_store()
    with store.atomic():
        hold = store.lock_thread(thread_id)
        if hold is None or hold.pause is not None:
            return None
        return _drain_idle(store, thread_id, hold.run_id).run_id


def awake(thread_id: str) -> QueueState:
    """The queue of a thread that somebody looks at; what may start is started first."""
    store = get_store()
    if not has_queue(store):
        return EMPTY
    state = handing.state(store, thread_id)
    if not state.items or state.paused is not None or not is_idle(store, store.active_run_for_thread(thread_id)):
        return state
    kick(thread_id)
    return handing.state(store, thread_id)


def kick_idle(limit: int) -> int:
    """Start what waits for idle threads, which a crash or a lost race may have left; how many runs."""
    store, seen, started = get_store(), set[str](), 0
    while has_queue(store) and (found := [one for one in store.idle_queues(limit) if one not in seen]):
        seen.update(found)
        started += sum(kick(thread_id) is not None for thread_id in found)
    return started


def _changed(store: AgentStore, thread_id: str) -> QueueState:
    """The queue after a change, of which whoever has the thread open is told."""
    events.thread_changed(store, thread_id, "queue")
    return handing.state(store, thread_id)


def _drain_idle(store: AgentStore, thread_id: str, holder: str | None) -> Handed:
    """Hand on a locked thread without a pause, if nobody alive holds it."""
    hold = ThreadHold(run_id=holder, pause=None)
    return drain(store, thread_id, hold) if freed(store, hold) else Handed()


def _ask_to_stop(store: AgentStore, run_id: str) -> bool:
    """Cancel the holder of a locked thread; one that no worker has is settled here, and hands its thread on."""
    answer = request(store, run_id)
    run = store.get_run(run_id) if answer == "settle_now" else None
    if run is not None and (settled := settle_cancelled(run)) is not None:
        store.on_commit(partial(close_stream, run, settled))
    return answer in {"requested", "settle_now"}


def _own(actor: Actor, thread_id: str) -> AgentStore:
    store = get_store()
    own_thread(store, actor, thread_id)
    if not has_queue(store):
        raise NotSupported
    return store


def _locked(store: AgentStore, thread_id: str) -> ThreadHold:
    hold = store.lock_thread(thread_id)
    if hold is None:  # deleted since it was looked at
        raise NotFound
    return hold


def _waiting(store: AgentStore, actor: Actor, message_id: str) -> QueuedMessage:
    """An own message that waits, with its thread locked: it waits until the unit ends."""
    if not has_queue(store):
        raise NotSupported
    message = store.get_queued_message(message_id)
    if message is not None:
        own_thread(store, actor, message.thread_id)
        _locked(store, message.thread_id)
        message = store.get_queued_message(message_id)
    return message or _refuse_missing(store, actor, message_id)


def _refuse_missing(store: AgentStore, actor: Actor, message_id: str) -> QueuedMessage:
    """A message that started has a run of its id; one that was removed, and one that never was, are unknown."""
    scope = handing.started_run(store, message_id)
    if scope is None:
        raise NotFound
    if not actor.same_as(scope.owner):
        raise NotAllowed
    raise MessageGone


def _files(actor: Actor, change: Edit) -> JsonList | None | Unset:
    """What the message will carry instead, if that changes."""
    return UNSET if change.attachments is UNSET else attachments.referred(actor, change.attachments or ())


def _check(message: QueuedMessage, change: Edit) -> None:
    text = message.content if change.message is UNSET else change.message
    files = message.attachments if change.attachments is UNSET else change.attachments
    if is_blank(text) and not files:
        raise Invalid(
            "Write something, or attach a file.", code="empty_message", fields={"message": ["This may not be empty."]}
        )
