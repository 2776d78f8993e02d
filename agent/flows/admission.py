"""Admitting a message: one transaction, so that what was said is stored before anybody works on it (03 §1, 06 §2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agent.domain.actor import Actor
from agent.domain.queue import NewQueuedMessage, QueueState
from agent.domain.snapshots import IdempotencyOutcome
from agent.domain.text import is_blank
from agent.domain.vocabulary import Said
from agent.errors import IdempotencyKeyReused, Invalid, NotFound, RunActive
from agent.flows import events, handing, quota
from agent.flows.handing import drain, has_queue
from agent.flows.holders import freed
from agent.flows.queue import make_way
from agent.flows.starts import Asked, Send, begin, check_names, new_thread
from agent.flows.text_decisions import Decided, decide, said_in
from agent.store import get_store
from agent.store.base import AgentStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A started run; `replayed` when an idempotency key had started it before."""

    run_id: str
    thread_id: str
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A message that was put into its thread's queue, with the queue as it is now.

    `run_id`: it was started from there. `interrupting`: the running answer was asked to stop for it.
    """

    message_id: str
    thread_id: str
    queue: QueueState
    run_id: str | None = None
    interrupting: bool = False

    def to_json(self) -> dict[str, Any]:
        started = {"runId": self.run_id} if self.run_id else {}
        place = (
            0 if self.run_id else self.queue.place_of(self.message_id)
        )  # null: removed since, when a send is repeated
        return {
            "queued": True,
            "threadId": self.thread_id,
            "messageId": self.message_id,
            "position": place,
            "queue": self.queue.to_json(),
            **started,
            **({"interrupting": True} if self.interrupting else {}),
        }


Outcome = Admitted | Queued | Decided


def submit(actor: Actor, send: Send) -> Outcome:
    """Start a run for the message, or let the message wait; the first check that fails answers and nothing is stored.

    A message that is a decision about an action proposal (spec 07 §9) decides it instead.
    Raises `Invalid` (codes of spec 09), `NotFound`, `NotAllowed`, `OverQuota`, `RunActive`, `IdempotencyKeyReused`.
    """
    return _submit(actor, send, may_wait=True)


def chat(actor: Actor, send: Send, *, run_id: str | None = None) -> Admitted:
    """Start a run for the message now, whatever its mode; `RunActive` where it would have to wait.

    `run_id` is the id that the run is to have. The message is never a decision about a proposal.
    """
    outcome = _submit(actor, replace(send, mode="auto"), may_wait=False, run_id=run_id)
    if not isinstance(outcome, Admitted):  # the key of a message that was queued, or was a decision, before
        raise RunActive
    return outcome


def _submit(actor: Actor, send: Send, *, may_wait: bool, run_id: str | None = None) -> Outcome:
    store = get_store()
    if (known := _known(store, actor, send)) is not None:
        return known
    _check_text(send)
    if may_wait and (said := said_in(send)) is not None and (decided := _decide(store, actor, send, said)) is not None:
        return decided
    _check_quota(store, actor, send)
    asked = check_names(store, actor, send, run_id=run_id)
    with store.atomic():
        if (known := _claim_key(store, actor, send)) is not None:
            return known
        outcome = _admit(store, asked, may_wait=may_wait)
        _save_outcome(store, actor, send, outcome)
    return outcome


def _decide(store: AgentStore, actor: Actor, send: Send, said: Said) -> Outcome | None:
    """Decide in words, once for an idempotency key; None when the message is an ordinary one after all."""
    with store.atomic():
        decided = decide(store, actor, send.thread_id or "", said)
        if decided is None:
            return None
        if (known := _claim_key(store, actor, send)) is not None:  # somebody with this key was quicker
            return known
        _save_outcome(store, actor, send, decided)
        return decided


def _check_text(send: Send) -> None:
    if send.regenerate:
        if send.thread_id is None:
            raise Invalid("Regenerating needs a threadId.", code="regenerate_needs_thread")
        return
    if is_blank(send.message or "") and not send.attachments:
        raise Invalid("The message is empty.", code="empty_message")


def _check_quota(store: AgentStore, actor: Actor, send: Send) -> None:
    over = quota.exceeded(actor)
    if over is not None:
        events.quota_exceeded(store, actor, over.period, thread_id=send.thread_id)
        raise over


def _admit(store: AgentStore, asked: Asked, *, may_wait: bool) -> Outcome:
    """Start at once where nobody is before this message: the way of nearly all, and one statement to know it."""
    send = asked.send
    waits_first = send.mode == "queue" and not send.regenerate and has_queue(store)
    if send.thread_id is None:
        if not waits_first:
            return _started(store, asked)
        thread_id = new_thread(store, asked)
        return _wait(store, replace(asked, send=replace(send, thread_id=thread_id)), thread_id, may_wait=may_wait)
    if not has_queue(store):
        store.set_active_run(send.thread_id, asked.run_id)
    elif waits_first or not store.claim_in_turn(send.thread_id, asked.run_id):
        return _wait(store, asked, send.thread_id, may_wait=may_wait)
    return _started(store, asked)


def _started(store: AgentStore, asked: Asked) -> Admitted:
    return Admitted(run_id=asked.run_id, thread_id=begin(store, asked))


def _wait(store: AgentStore, asked: Asked, thread_id: str, *, may_wait: bool) -> Outcome:
    """What becomes of a send that may not be first: with the thread locked, everybody before it is seen."""
    hold = store.lock_thread(thread_id)
    if hold is None:
        raise NotFound  # deleted since it was checked
    send, is_idle = asked.send, freed(store, hold)
    is_next = is_idle and (hold.pause is not None or not store.list_queue(thread_id))
    if (is_idle and send.regenerate) or (is_next and send.mode != "queue"):
        store.claim_active_run(thread_id, asked.run_id, replacing=hold.run_id)
        return _started(store, asked)
    if send.regenerate or not may_wait:
        raise RunActive
    if is_idle:
        _enqueue(store, asked, thread_id)
        handed = drain(store, thread_id, hold)
        run_id = handed.run_id if handed.run_id == asked.run_id else None
        return _queued(store, asked, thread_id, run_id=run_id)
    _enqueue(store, asked, thread_id, interrupt=send.mode == "interrupt")
    if send.mode != "interrupt":
        return _queued(store, asked, thread_id)
    moved = make_way(store, thread_id)
    return _queued(store, asked, thread_id, run_id=moved.run_id, interrupting=moved.interrupting)


def _queued(
    store: AgentStore, asked: Asked, thread_id: str, *, run_id: str | None = None, interrupting: bool = False
) -> Queued:
    return Queued(
        message_id=asked.run_id,
        thread_id=thread_id,
        queue=handing.state(store, thread_id),
        run_id=run_id,
        interrupting=interrupting,
    )


def _enqueue(store: AgentStore, asked: Asked, thread_id: str, *, interrupt: bool = False) -> None:
    """Everything that the run will need, as the send named it: names are checked again when it starts."""
    send = asked.send
    message = NewQueuedMessage(
        id=asked.run_id,
        thread_id=thread_id,
        actor=asked.actor,
        content=send.message or "",
        attachments=asked.attachments,
        agent_name=send.agent,
        persona=send.persona,
        model=send.model,
        page_context=send.page_context,
        ui_capabilities=send.ui_capabilities,
        host_context=send.host_context,
        interrupt=interrupt,
    )
    store.enqueue_message(message, "head" if interrupt else "tail")
    events.thread_changed(store, thread_id, "queue")


def _known(store: AgentStore, actor: Actor, send: Send) -> Outcome | None:
    if send.idempotency_key is None or "idempotency" not in store.capabilities:
        return None
    return _replay(store, send, store.find_idempotency_key(actor.ref, send.idempotency_key))


def _claim_key(store: AgentStore, actor: Actor, send: Send) -> Outcome | None:
    if send.idempotency_key is None or "idempotency" not in store.capabilities:
        return None
    claimed = store.claim_idempotency_key(actor.ref, send.idempotency_key, send.fingerprint or "")
    return _replay(store, send, claimed)


def _replay(store: AgentStore, send: Send, known: IdempotencyOutcome | None) -> Outcome | None:
    """The first outcome of a key: a run, or a message with its queue as it is now."""
    if known is None:
        return None
    if known.fingerprint != (send.fingerprint or ""):
        raise IdempotencyKeyReused
    if known.outcome is None or known.thread_id is None:
        raise RunActive("The first request with this Idempotency-Key is still being admitted.")
    if "proposalDecision" in known.outcome:
        return Decided.from_json(known.outcome)
    if known.message_id is None:
        return Admitted(run_id=known.run_id or "", thread_id=known.thread_id, replayed=True)
    return Queued(
        message_id=known.message_id,
        thread_id=known.thread_id,
        queue=handing.state(store, known.thread_id),
        run_id=known.message_id if handing.started_run(store, known.message_id) is not None else None,
        interrupting=bool(known.outcome.get("interrupting")),
    )


def _save_outcome(store: AgentStore, actor: Actor, send: Send, outcome: Outcome) -> None:
    if send.idempotency_key is None or "idempotency" not in store.capabilities:
        return
    told: dict[str, Any] = outcome.to_json() if isinstance(outcome, Decided) else {}
    if isinstance(outcome, Queued):
        told = {"queued": True, "interrupting": outcome.interrupting}
    store.save_idempotency_outcome(
        actor.ref,
        send.idempotency_key,
        thread_id=outcome.thread_id,
        run_id=outcome.run_id,
        message_id=outcome.message_id if isinstance(outcome, Queued) else None,
        outcome={"threadId": outcome.thread_id, "runId": outcome.run_id, **told},
    )
