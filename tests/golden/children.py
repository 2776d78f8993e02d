"""The runs that a recorded one has asked for."""

from __future__ import annotations

from typing import Any

from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage, NewRun, RunEnd
from agent.domain.ids import new_id
from agent.store.base import AgentStore
from agent.testing.turns import drive_run


def begun(store: AgentStore, run_id: str, payload: dict[str, Any], call: dict[str, Any], *, by: Actor) -> None:
    """The child of a call, as it was recorded with it."""
    child_id, said = payload["runId"], new_id()
    thread = store.create_thread(actor=by, transient=True, active_run_id=child_id)
    task = call["input"]["task"]
    store.append_message(AppendMessage(id=said, thread_id=thread.id, role="user", content=task, run_id=child_id))
    new = NewRun(
        id=child_id,
        thread_id=thread.id,
        actor=by,
        input={"messageId": said, "task": task},
        agent_name=payload["agent"],
        trigger="detached" if payload["detached"] else "delegate",
        parent_run_id=run_id,
        parent_call_id=call["id"],
        stream_run_id=None if payload["detached"] else run_id,
        depth=1,
    )
    store.create_run(new, ("persist:user", {"messageId": said}))


def ended(store: AgentStore, run_id: str) -> None:
    """The child that was awaited is over."""
    (child,) = store.open_children(run_id)
    store.record_run_end(child.id, RunEnd(status="completed"))


def play(store: AgentStore, run_id: str) -> None:
    """Work on what the run waits for."""
    (child,) = store.open_children(run_id)
    assert drive_run(child.id).status == "completed"
