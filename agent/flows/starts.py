"""Starting a run: its names are checked against today's declarations; then its row, its first step and what was said.

Whoever calls `begin` has opened the unit of work, and a known thread is held for the run (spec 03 §1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage, NewRun, ThreadPatch
from agent.domain.ids import new_id
from agent.domain.snapshots import JsonList
from agent.domain.states import RunTrigger
from agent.errors import Invalid
from agent.flows import attachments, catalogue, dispatch, events
from agent.flows.ownership import own_thread
from agent.store.base import AgentStore

PERSIST_USER = "persist:user"
REGENERATE = "regenerate:truncate"

FirstStep = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """What a user sends. `fingerprint` is the SHA-256 of the canonical body, for the idempotency key."""

    message: str | None = None
    thread_id: str | None = None
    agent: str | None = None
    persona: str | None = None
    model: str | None = None
    attachments: tuple[str, ...] = ()
    page_context: dict[str, Any] | None = None
    regenerate: bool = False
    transient: bool = False
    mode: str = "auto"  # auto, queue or interrupt (spec 06 §2)
    ui_capabilities: dict[str, Any] | None = None
    host_context: dict[str, Any] | None = None
    request_id: str | None = None
    idempotency_key: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """The run and the call that asked for a run; `stream_run_id` None: it speaks in a stream of its own."""

    run_id: str
    call_id: str
    stream_run_id: str | None
    depth: int  # of the run that is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A send whose names were checked, with the id that its run will have."""

    actor: Actor
    send: Send
    run_id: str
    agent_name: str | None
    model_id: str | None
    persona: str | None
    trigger: str = RunTrigger.SEND
    attachments: JsonList | None = None
    parent: Parent | None = None


def check_names(
    store: AgentStore,
    actor: Actor,
    send: Send,
    *,
    run_id: str | None = None,
    trigger: str = RunTrigger.SEND,
    carried: JsonList | None = None,
) -> Asked:
    """Agent, persona, model, attachments, then the thread: the order in which the spec answers.

    `carried` are the files of a message that waited, whose urls are made anew.
    """
    catalogue.check_agent(send.agent, actor)
    catalogue.check_persona(send.persona, send.agent, actor)
    catalogue.check_model(send.model, send.agent, actor)
    files = attachments.referred(actor, send.attachments) or attachments.minted(actor, carried, keep=True)
    thread = own_thread(store, actor, send.thread_id) if send.thread_id is not None else None
    agent_name = catalogue.resolve_agent(send.agent, thread.default_agent if thread else None)
    if send.agent is None:
        catalogue.check_agent(agent_name, actor)
    return Asked(
        actor=actor,
        send=send,
        run_id=run_id or new_id(),
        agent_name=agent_name,
        model_id=catalogue.resolve_model(agent_name, send.model, thread.model if thread else None),
        persona=catalogue.resolve_persona(agent_name, send.persona, thread.persona if thread else None),
        trigger=trigger,
        attachments=files,
    )


def begin(store: AgentStore, asked: Asked) -> str:
    """Store the run with its first step and what the user said, in the fewest statements; the thread's id."""
    said, thread_id = _said(asked), asked.send.thread_id
    if thread_id is None:
        thread_id, first = new_thread(store, asked, held_by=asked.run_id, said=said), _persisted(said)
    else:
        first = _on_known_thread(store, asked, said, thread_id)
    if said is not None:
        events.message_stored(store, said, actor=asked.actor, thread_id=thread_id)
    store.create_run(_new_run(asked, thread_id, said), first)
    events.thread_changed(store, thread_id, "run-started")
    store.on_commit(partial(dispatch.run, asked.run_id))
    return thread_id


def new_thread(
    store: AgentStore, asked: Asked, *, held_by: str | None = None, said: AppendMessage | None = None
) -> str:
    """A thread for the send, with its first message if given."""
    created = store.create_thread(
        actor=asked.actor,
        transient=asked.send.transient,
        agent_name=asked.send.agent,
        persona=asked.persona if asked.send.persona is not None else None,
        active_run_id=held_by,
        first_message=said,
    )
    return created.id


def _said(asked: Asked) -> AppendMessage | None:
    """The user's message; None when an old one is answered again."""
    if asked.send.regenerate:
        return None
    return AppendMessage(
        id=new_id(),
        thread_id=asked.send.thread_id or "",
        role="user",
        content=asked.send.message or "",
        attachments=asked.attachments,
        run_id=asked.run_id,
    )


def _persisted(said: AppendMessage | None) -> FirstStep:
    return PERSIST_USER, {"messageId": None if said is None else said.id}


def _on_known_thread(store: AgentStore, asked: Asked, said: AppendMessage | None, thread_id: str) -> FirstStep:
    if asked.send.persona is not None and "thread_patch" in store.capabilities:  # a named one stays with the thread
        store.update_thread(thread_id, ThreadPatch(persona=asked.persona))
    if said is not None:
        store.append_message(said)
        return _persisted(said)
    removed = store.truncate_after_last_user(thread_id)
    if removed is None:
        raise Invalid("There is no message to answer again.", code="nothing_to_regenerate")
    return REGENERATE, {"removed": removed}


def _new_run(asked: Asked, thread_id: str, said: AppendMessage | None) -> NewRun:
    send, parent = asked.send, asked.parent
    given = {
        "messageId": None if said is None else said.id,
        "regenerate": send.regenerate or None,
        "pageContext": send.page_context,
        "uiCapabilities": send.ui_capabilities,
        "hostContext": send.host_context,
        "requestId": send.request_id,
        "task": None if parent is None else send.message,
    }
    return NewRun(
        id=asked.run_id,
        thread_id=thread_id,
        actor=asked.actor,
        agent_name=asked.agent_name,
        model_id=asked.model_id,
        persona=asked.persona,
        trigger=asked.trigger,
        input={name: value for name, value in given.items() if value is not None},
        dispatched=True,
        parent_run_id=None if parent is None else parent.run_id,
        parent_call_id=None if parent is None else parent.call_id,
        stream_run_id=None if parent is None else parent.stream_run_id,
        depth=0 if parent is None else parent.depth,
    )
