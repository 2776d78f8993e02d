"""`python -m tests.golden`: record the journals of shapes that have no file yet; a file that is there stays."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()  # what follows reads the settings

from django.test import override_settings

from agent.domain.commands import AppendMessage
from agent.domain.history import HistoryPolicyContext
from agent.domain.runs import Run, Step
from agent.flows import history
from agent.flows.admission import chat
from agent.flows.starts import Send
from agent.registry import isolated_registry
from agent.store.base import AgentStore
from agent.testing.memory import InMemoryStore
from agent.testing.turns import drive_run, held_runner
from tests.golden.journals import ALICE, as_asked, as_message, decide, path_of
from tests.golden.shapes import SHAPES, Player, Shape, declare


def record(shape: Shape) -> dict[str, Any]:
    """Play the turn once; what a file holds of it."""
    store, player = InMemoryStore(), Player(shape)
    mine = {"STORE": store, "SINK": "memory", "PROVIDERS": {"player": player}, "DEFAULT_AGENT": "desk"}
    with isolated_registry(), override_settings(AGENT={**mine, **shape.settings}), held_runner():
        declare()
        run_id, thread_id = _sent(store, shape)
        before = _messages(store, thread_id)
        if shape.old:
            _record_whole_thread(store, run_id, thread_id)
        run = drive_run(run_id)
        while run.status == "waiting":
            decide(store, run_id, shape.decided)
            run = drive_run(run_id)
        assert run.status == "completed", run.error_message
        return {
            "run": _run(run),
            "before": before,
            "steps": [{"name": step.name, "payload": step.payload} for step in store.steps(run_id)],
            "asked": {str(step): as_asked(request) for step, request in player.asked.items()},
            "after": _messages(store, thread_id),
        }


def _sent(store: AgentStore, shape: Shape) -> tuple[str, str]:
    thread_id = None
    for role, content in shape.before:
        thread_id = thread_id or store.create_thread(actor=ALICE).id
        store.append_message(AppendMessage(thread_id=thread_id, role=role, content=content))
    message = None if shape.send.get("regenerate") else "Where is it?"
    admitted = chat(ALICE, Send(message=message, thread_id=thread_id, **shape.send))
    return admitted.run_id, admitted.thread_id


def _record_whole_thread(store: AgentStore, run_id: str, thread_id: str) -> None:
    """What a worker recorded before there was `agent:selected-history`."""
    lease = store.claim_run(run_id, "old", 60)
    assert lease is not None
    payload = history.load_whole(store, HistoryPolicyContext(thread_id=thread_id, actor=ALICE, agent_name="desk"))
    store.record_steps(lease, [Step(position=1, name="load:thread", payload=payload)])
    store.release_run(lease)


def _run(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in ("agent_name", "model_id", "persona", "input")}


def _messages(store: AgentStore, thread_id: str) -> list[dict[str, Any]]:
    detail = store.get_thread(thread_id)
    return [as_message(message) for message in detail.messages] if detail else []


if __name__ == "__main__":
    for name, shape in SHAPES.items():
        if path_of(name).exists():
            continue
        path_of(name).write_text(json.dumps(record(shape), indent=1) + "\n")
        print(f"recorded {name}", file=sys.stderr)
