"""Runs that wait for a person, and what this process holds meanwhile."""

from __future__ import annotations

import gc
import threading
from queue import SimpleQueue

from agent.flows import approvals, dispatch
from agent.flows.admission import chat
from agent.flows.starts import Send
from agent.store import get_store
from bench import counting, runner
from bench.agents import ACTION_QUESTION
from bench.machine import resident_bytes
from bench.turns import ACTOR

_waiting: SimpleQueue[str] = SimpleQueue()  # run ids


def park(runs: int) -> dict[str, int]:
    """So many more runs that wait; what the process holds then."""
    for _ in range(runs):
        run_id = chat(ACTOR, Send(message=ACTION_QUESTION, agent="acting")).run_id
        _left(run_id, "waiting")
        _waiting.put(run_id)
    return held()


def approve() -> dict[str, int]:
    """Somebody approves the first of them, and it goes on to its end."""
    run_id = _waiting.get()
    run, store = get_store().get_run(run_id), get_store()
    assert run is not None
    detail = store.get_thread(run.thread_id)
    assert detail is not None
    (call,) = detail.messages[-1].tool_calls or []
    approvals.approve(ACTOR, call["id"])
    _left(run_id, "completed")
    return held()


def held() -> dict[str, int]:
    """What this process holds."""
    gc.collect()
    inline = dispatch.runner()
    assert isinstance(inline, runner.TimedRunner)
    return {
        "driven": inline.driven,
        "tasks": inline.tasks_of_loop(),
        "threads": threading.active_count(),
        "connections": counting.open_connections(),
        "rss": resident_bytes(),
    }


def _left(run_id: str, status: str) -> None:
    """The process has let go of the run, in this state."""
    assert runner.ended.get(timeout=60)[0] == run_id
    run = get_store().get_run(run_id)
    assert run is not None
    assert run.status == status, (run.status, run.error_message)
