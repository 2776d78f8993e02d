"""Asking a run to stop: a terminal of its own (03 §7)."""

from __future__ import annotations

from functools import partial

from agent.domain.actor import Actor
from agent.domain.states import TERMINAL_RUN, RunStatus
from agent.errors import NotAllowed, NotFound
from agent.flows import dispatch
from agent.flows.settlement import close_stream, settle_cancelled
from agent.store import get_store
from agent.store.base import AgentStore


def cancel(actor: Actor, run_id: str) -> bool:
    """Stop an own run that is open; False when it settled by itself meanwhile. A finished run is not found."""
    scope = get_store().run_scope(run_id)
    if scope is None:
        raise NotFound
    if not actor.same_as(scope.owner):
        raise NotAllowed
    if scope.status in TERMINAL_RUN:
        raise NotFound
    return stop(run_id)


def request(store: AgentStore, run_id: str) -> str:
    """Ask a run to stop and tell its worker after the commit; what the store says of it."""
    answer = store.request_cancel(run_id)
    if answer == "requested":
        store.on_commit(partial(dispatch.signal, run_id))
    return answer


def stop(run_id: str) -> bool:
    """Stop a run whoever asks: settled at once when no worker has it, else at its next border."""
    store = get_store()
    with store.atomic():
        answer = request(store, run_id)
    if answer != "settle_now":
        return answer == "requested"
    run = store.get_run(run_id)
    settled = None if run is None else settle_cancelled(run)
    if run is None or settled is None:
        # A worker that took the run up in between saw the request at its first border, and settled it as asked.
        over = store.get_run(run_id)
        return over is not None and over.status == RunStatus.CANCELLED
    close_stream(run, settled)
    return True
