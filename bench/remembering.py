"""Long threads whose history window summarizes what it leaves out: what a turn on them costs."""

from __future__ import annotations

import json
from typing import Any

from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage
from agent.store import get_store
from bench import counting
from bench.turns import Turns

ACTOR = Actor("alice")
AT_ONCE = 500


def seed(messages: int) -> str:
    """A thread of that many short messages, the last of them an answer."""
    store = get_store()
    thread_id = store.create_thread(actor=ACTOR).id
    for start in range(0, messages, AT_ONCE):
        with store.atomic():
            for number in range(start, min(start + AT_ONCE, messages)):
                role = ("user", "assistant")[number % 2]
                store.append_message(AppendMessage(thread_id=thread_id, role=role, content=f"message {number} " * 5))
    return thread_id


def timed(turns: Turns, thread_id: str, times: int) -> list[dict[str, float | None]]:
    """Turns on such a thread, one after the other."""
    return [turns.again(thread_id).to_json() for _ in range(times)]


def looked_at(turns: Turns, thread_id: str) -> dict[str, int]:
    """One more turn, counted: its statements, and the bytes of what it loaded."""
    with counting.counted() as counts:
        turns.again(thread_id)
    return {"statements": counts.statements, "commits": counts.commits, "bytes": _loaded_bytes(thread_id)}


def _loaded_bytes(thread_id: str) -> int:
    store = get_store()
    detail = store.get_thread(thread_id)
    assert detail is not None, "the thread is gone"
    steps = {step.name: step.payload for step in store.steps(str(detail.messages[-1].run_id))}
    loaded: dict[str, Any] = steps["load:thread"]
    assert loaded["summary"]["text"], "the turn did not start from a summary"
    assert steps["history:summarize"]["upToSeq"] == detail.messages[-12].seq, "the turn did not fold what was new"
    return len(json.dumps(loaded))
