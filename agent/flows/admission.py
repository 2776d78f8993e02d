"""Admitting a message: one transaction, so that what the user said is stored before anybody works on it (03 §1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from agent.conf import agent_settings
from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage, NewRun, ThreadPatch
from agent.domain.ids import new_id
from agent.domain.snapshots import IdempotencyOutcome, ThreadScope
from agent.errors import IdempotencyKeyReused, Invalid, NotAllowed, NotFound, NotSupported, OverQuota, RunActive
from agent.flows import catalogue, dispatch, events
from agent.spi import QuotaPolicy
from agent.store import get_store
from agent.store.base import AgentStore

PERSIST_USER = "persist:user"
REGENERATE = "regenerate:truncate"
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"  # zero-width: a message of them alone says nothing


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
    mode: str = "auto"
    ui_capabilities: dict[str, Any] | None = None
    host_context: dict[str, Any] | None = None
    request_id: str | None = None
    idempotency_key: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A started run; `replayed` when an idempotency key had started it before."""

    run_id: str
    thread_id: str
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """A send whose names were checked against today's declarations."""

    agent_name: str | None
    model_id: str | None
    persona: str | None
    thread: ThreadScope | None


def submit(actor: Actor, send: Send) -> Admitted:
    """Start a run for the message; the first check that fails answers and nothing is stored.

    Raises `Invalid` (codes of spec 09), `NotFound`, `NotAllowed`, `OverQuota`, `RunActive`, `IdempotencyKeyReused`.
    """
    store = get_store()
    if (known := _known(store, actor, send)) is not None:
        return known
    _check_text(send)
    _check_quota(store, actor, send)
    checked = _check_names(store, actor, send)
    with store.atomic():
        if (known := _claim_key(store, actor, send)) is not None:
            return known
        admitted = _start(store, actor, send, checked)
        _save_outcome(store, actor, send, admitted)
        store.on_commit(partial(dispatch.run, admitted.run_id))
        events.thread_changed(store, admitted.thread_id, "run-started")
    return admitted


def _check_text(send: Send) -> None:
    if send.regenerate:
        if send.thread_id is None:
            raise Invalid("Regenerating needs a threadId.", code="regenerate_needs_thread")
        return
    if not (send.message or "").strip().strip(INVISIBLE).strip() and not send.attachments:
        raise Invalid("The message is empty.", code="empty_message")


def _check_quota(store: AgentStore, actor: Actor, send: Send) -> None:
    settings = agent_settings()
    if settings.quota is None:
        return
    blocked = cast(QuotaPolicy, settings.quota_policy).report(actor).get("blocked")
    if blocked:
        events.quota_exceeded(store, actor, blocked["period"], thread_id=send.thread_id)
        raise OverQuota(blocked.get("reason"), period=blocked["period"])


def _check_names(store: AgentStore, actor: Actor, send: Send) -> _Checked:
    """Agent, persona, model, attachments, then the thread: the order in which the spec answers."""
    catalogue.check_agent(send.agent, actor)
    catalogue.check_persona(send.persona, send.agent, actor)
    catalogue.check_model(send.model, send.agent, actor)
    if send.attachments:
        raise NotSupported("This installation takes no attachments.")
    thread = _own_thread(store, actor, send.thread_id) if send.thread_id is not None else None
    agent_name = catalogue.resolve_agent(send.agent, thread.default_agent if thread else None)
    if send.agent is None:
        catalogue.check_agent(agent_name, actor)
    return _Checked(
        agent_name=agent_name,
        model_id=catalogue.resolve_model(agent_name, send.model, thread.model if thread else None),
        persona=catalogue.resolve_persona(agent_name, send.persona, thread.persona if thread else None),
        thread=thread,
    )


def _own_thread(store: AgentStore, actor: Actor, thread_id: str) -> ThreadScope:
    scope = store.thread_scope(thread_id)
    if scope is None or scope.deleted:
        raise NotFound
    if not actor.same_as(scope.owner):
        raise NotAllowed
    return scope


def _start(store: AgentStore, actor: Actor, send: Send, checked: _Checked) -> Admitted:
    """The run with its journal's first position, and what the user said, in the fewest statements."""
    run_id, said = new_id(), _said(send)
    thread_id = _new_thread(store, actor, send, checked, said, run_id) if send.thread_id is None else send.thread_id
    if send.thread_id is not None:
        _claim_thread(store, thread_id, run_id)
        if send.persona is not None:  # one that is named stays with the thread
            store.update_thread(thread_id, ThreadPatch(persona=checked.persona))
    if said is None:
        removed = store.truncate_after_last_user(thread_id)
        if removed is None:
            raise Invalid("There is no message to answer again.", code="nothing_to_regenerate")
        first: tuple[str, dict[str, Any]] = (REGENERATE, {"removed": removed})
    else:
        first = (PERSIST_USER, {"messageId": said.id})
        if send.thread_id is not None:
            store.append_message(replace(said, thread_id=thread_id, run_id=run_id))
        events.message_stored(store, replace(said, run_id=run_id), actor=actor, thread_id=thread_id)
    store.create_run(_new_run(actor, send, checked, run_id, thread_id, said), first)
    return Admitted(run_id=run_id, thread_id=thread_id)


def _said(send: Send) -> AppendMessage | None:
    """The user's message; None when an old one is answered again."""
    if send.regenerate:
        return None
    return AppendMessage(id=new_id(), thread_id="", role="user", content=send.message or "")


def _new_thread(
    store: AgentStore, actor: Actor, send: Send, checked: _Checked, said: AppendMessage | None, run_id: str
) -> str:
    created = store.create_thread(
        actor=actor,
        transient=send.transient,
        agent_name=send.agent,
        persona=checked.persona if send.persona is not None else None,
        active_run_id=run_id,
        first_message=None if said is None else replace(said, run_id=run_id),
    )
    return created.id


def _claim_thread(store: AgentStore, thread_id: str, run_id: str) -> None:
    """Win the thread by a guarded update."""
    if store.claim_active_run(thread_id, run_id):
        return
    if store.owner_of_thread(thread_id) is None:
        raise NotFound  # deleted since it was checked
    raise RunActive


def _new_run(
    actor: Actor, send: Send, checked: _Checked, run_id: str, thread_id: str, said: AppendMessage | None
) -> NewRun:
    given = {
        "messageId": None if said is None else said.id,
        "regenerate": send.regenerate or None,
        "pageContext": send.page_context,
        "uiCapabilities": send.ui_capabilities,
        "hostContext": send.host_context,
        "requestId": send.request_id,
    }
    return NewRun(
        id=run_id,
        thread_id=thread_id,
        actor=actor,
        agent_name=checked.agent_name,
        model_id=checked.model_id,
        persona=checked.persona,
        input={name: value for name, value in given.items() if value is not None},
        dispatched=True,
    )


def _known(store: AgentStore, actor: Actor, send: Send) -> Admitted | None:
    if send.idempotency_key is None or "idempotency" not in store.capabilities:
        return None
    return _replay(send, store.find_idempotency_key(actor.ref, send.idempotency_key))


def _claim_key(store: AgentStore, actor: Actor, send: Send) -> Admitted | None:
    if send.idempotency_key is None or "idempotency" not in store.capabilities:
        return None
    return _replay(send, store.claim_idempotency_key(actor.ref, send.idempotency_key, send.fingerprint or ""))


def _replay(send: Send, known: IdempotencyOutcome | None) -> Admitted | None:
    if known is None:
        return None
    if known.fingerprint != (send.fingerprint or ""):
        raise IdempotencyKeyReused
    if known.run_id is None or known.thread_id is None:
        raise RunActive("The first request with this Idempotency-Key is still being admitted.")
    return Admitted(run_id=known.run_id, thread_id=known.thread_id, replayed=True)


def _save_outcome(store: AgentStore, actor: Actor, send: Send, admitted: Admitted) -> None:
    if send.idempotency_key is None or "idempotency" not in store.capabilities:
        return
    store.save_idempotency_outcome(
        actor.ref,
        send.idempotency_key,
        thread_id=admitted.thread_id,
        run_id=admitted.run_id,
        message_id=None,
        outcome={"threadId": admitted.thread_id, "runId": admitted.run_id},
    )
