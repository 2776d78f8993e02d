"""Runs that other runs asked for (spec 11 §6): what the end of one means for the other, in the unit that settles it.

Rows are locked in one order: threads, then runs, of which the parent comes first. So a parent that parks sees the end
of its child, or the child's end sees the parent parked.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from agent.domain.runs import Run
from agent.domain.states import RunStatus, RunTrigger
from agent.errors import NotFound
from agent.flows import dispatch, events
from agent.flows.answers import plain_message
from agent.flows.handing import lock
from agent.registry import human_name, registry
from agent.store.base import AgentStore

FAILED = 'The agent "{agent}" could not finish what it was asked. {message}'


def hold(store: AgentStore, run: Run) -> None:
    """Hold what the settlement of a run touches before the run's own row."""
    lock(store, run.thread_id)
    if run.parent_run_id is None:
        return
    if run.is_delegate:
        store.lock_run(run.parent_run_id)
    elif (parent := store.get_run(run.parent_run_id)) is not None:
        lock(store, parent.thread_id)


def wake_parent(store: AgentStore, run: Run) -> None:
    """Have the run that awaits this one go on, once this unit is committed."""
    if run.is_delegate and run.parent_run_id is not None and store.wake_run(run.parent_run_id):
        store.on_commit(partial(dispatch.run, run.parent_run_id))


def broken_off(store: AgentStore, run: Run, status: str, *, message: str | None) -> None:
    """A run has ended without an answer: who waits for it goes on, whom it awaits stops; a failure is told."""
    wake_parent(store, run)
    for child in store.open_children(run.id):
        if child.is_delegate:
            _stop(store, child)
    if run.trigger == RunTrigger.DETACHED and status == RunStatus.FAILED:
        agent = registry.definition(run.agent_name).label if run.agent_name else human_name("agent")
        deliver(store, run, FAILED.format(agent=agent, message=message or "").strip())


def _stop(store: AgentStore, child: Run) -> None:
    """Ask a child to stop: its worker at the next border, or the one that takes it up now, settles it."""
    if store.request_cancel(child.id) == "requested":
        store.on_commit(partial(dispatch.signal, child.id))
        return
    store.wake_run(child.id)
    store.on_commit(partial(dispatch.run, child.id))


def answer_of(store: AgentStore, run: Run) -> str:
    """The last that a run has said."""
    said = store.messages_of_run(run.thread_id, run.id) or []
    return next((each.content for each in reversed(said) if each.role == "assistant" and each.content), "")


def deliver(store: AgentStore, run: Run, text: str) -> str | None:
    """Put the answer of a detached run into the conversation that asked; None when that is gone."""
    parent = None if run.parent_run_id is None else store.get_run(run.parent_run_id)
    if parent is None or not text:
        return None
    said = replace(plain_message(run, text), thread_id=parent.thread_id)
    try:
        store.append_message(said)
    except NotFound:  # the conversation was deleted meanwhile
        return None
    events.message_stored(store, said, actor=run.actor, thread_id=parent.thread_id)
    events.thread_changed(store, parent.thread_id, "outcome")
    return said.id
