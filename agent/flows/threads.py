"""What an owner does with a conversation beside talking in it. Another's is refused, an unknown one is not found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent.domain.actor import Actor
from agent.domain.clock import wire_time
from agent.domain.commands import UNSET, ThreadPatch, Unset
from agent.domain.queue import QueueState
from agent.domain.snapshots import ThreadDetail, ThreadSummary
from agent.domain.text import clean_text, is_exact
from agent.errors import Invalid, NotFound, NotSupported, RunActive
from agent.flows import attachments, catalogue, events
from agent.flows.cancel import stop
from agent.flows.handing import has_queue
from agent.flows.ownership import own_thread
from agent.flows.queue import awake
from agent.store import get_store
from agent.store.base import AgentStore

NEW_TITLE = "New chat"


def check_own(actor: Actor, thread_id: str) -> None:
    """Raise unless it is a live thread of the actor's own."""
    own_thread(get_store(), actor, thread_id)


def list_threads(actor: Actor, limit: int) -> list[ThreadSummary]:
    """The actor's threads, the last changed first; scratch threads are left out."""
    return get_store().list_threads(actor, limit)


def read(actor: Actor, thread_id: str) -> tuple[ThreadDetail, QueueState]:
    """A thread with every message and what waits in it; on an idle one that starts first."""
    store = get_store()
    own_thread(store, actor, thread_id)
    queue = awake(thread_id)
    thread = store.get_thread(thread_id)
    if thread is None:  # deleted since it was looked at
        raise NotFound
    return _with_urls(actor, thread), queue


def _with_urls(actor: Actor, thread: ThreadDetail) -> ThreadDetail:
    """Urls of files hold for a while: whoever reads gets new ones."""
    messages = tuple(
        replace(message, attachments=attachments.minted(actor, message.attachments)) if message.attachments else message
        for message in thread.messages
    )
    return replace(thread, messages=messages)


def patch(actor: Actor, thread_id: str, changes: ThreadPatch) -> None:
    """Change title and pins; a pin names something that the actor may use."""
    store = get_store()
    own_thread(store, actor, thread_id)
    _patch(actor, store, thread_id, changes)
    if changes.title is not UNSET:
        events.thread_changed(store, thread_id, "title")


def _patch(actor: Actor, store: AgentStore, thread_id: str, changes: ThreadPatch) -> None:
    if "thread_patch" not in store.capabilities:
        _patch_title(store, thread_id, changes)
        return
    _check_pins(actor, store, thread_id, changes)
    title = changes.title if changes.title is UNSET else clean_text(changes.title)
    cleaned = ThreadPatch(
        title=title, default_agent=changes.default_agent, model=changes.model, persona=changes.persona
    )
    if store.update_thread(thread_id, cleaned) is None:
        raise NotFound


def delete(actor: Actor, thread_id: str) -> None:
    """Put a thread away with all that waits in it; the run that answers it is stopped."""
    store = get_store()
    own_thread(store, actor, thread_id)
    with store.atomic():
        if has_queue(store):
            store.clear_queue(thread_id)
        run_id = store.active_run_for_thread(thread_id)
        store.soft_delete_thread(thread_id)
    if run_id is not None:
        stop(run_id)


def promote(actor: Actor, thread_id: str) -> None:
    """Make a scratch thread one that is listed."""
    store = get_store()
    own_thread(store, actor, thread_id)
    store.promote_thread(thread_id)


def fork(actor: Actor, thread_id: str, from_message_id: str) -> ThreadSummary:
    """A copy up to and including the message; an unknown message copies all."""
    store = get_store()
    own_thread(store, actor, thread_id)
    return store.fork_thread(thread_id, from_message_id if is_exact(from_message_id) else "")


def truncate(actor: Actor, thread_id: str, from_message_id: str) -> None:
    """Remove a message and all that follows; not while a run is answering."""
    store = get_store()
    own_thread(store, actor, thread_id)
    with store.atomic():
        _refuse_busy(store, thread_id)
        if not store.truncate_from(thread_id, from_message_id):
            raise NotFound
        # The truncation holds the thread's row: a send that came in between is seen now, and undoes it.
        _refuse_busy(store, thread_id)


def give_feedback(actor: Actor, message_id: str, value: str | None, *, comment: str | None) -> dict[str, Any] | None:
    """Say what an answer was worth, or take that back; what is kept now."""
    store = get_store()
    if "feedback" not in store.capabilities:
        raise NotSupported
    thread_id = store.thread_of_message(message_id)
    if thread_id is None:
        raise NotFound
    own_thread(store, actor, thread_id)
    feedback: dict[str, Any] | None = None
    if value is not None:
        said = {"comment": clean_text(comment)} if comment else {}
        feedback = {"value": value, **said, "updatedAt": wire_time(store.clock())}
    if not store.set_message_feedback(message_id, feedback):
        raise Invalid("Only an answer can be given feedback.")
    return feedback


def _refuse_busy(store: AgentStore, thread_id: str) -> None:
    if store.active_run_for_thread(thread_id) is not None:
        raise RunActive


def _patch_title(store: AgentStore, thread_id: str, changes: ThreadPatch) -> None:
    """All that a store without the capability can do."""
    if (changes.default_agent, changes.model, changes.persona) != (UNSET, UNSET, UNSET):
        raise NotSupported
    if changes.title is not UNSET:
        store.set_title(thread_id, clean_text(changes.title))


def _check_pins(actor: Actor, store: AgentStore, thread_id: str, changes: ThreadPatch) -> None:
    """Pins are checked as a send's names are; one that is left alone or cleared needs no check."""
    agent, persona, model = _set(changes.default_agent), _set(changes.persona), _set(changes.model)
    catalogue.check_agent(agent, actor)
    if persona is None and model is None:
        return
    if changes.default_agent is UNSET:
        agent = store.default_agent_for_thread(thread_id)
    catalogue.check_persona(persona, agent, actor)
    catalogue.check_model(model, agent, actor)


def _set(pin: str | Unset | None) -> str | None:
    return None if pin is UNSET else pin
