"""A cancel under Celery, in every state that a run can be in; with the inline runner: tests/flows."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent import tasks
from agent.db import close_threads
from agent.domain.actor import Actor
from agent.domain.runs import Run
from agent.errors import NotFound
from agent.flows.admission import chat
from agent.flows.cancel import cancel
from agent.flows.starts import Send
from agent.runners import worker
from agent.runners.celery import CeleryRunner
from agent.store import get_store
from tests.workers.process import PATIENCE, until

ALICE = Actor("alice")


@pytest.fixture(autouse=True)
def slot(web: CeleryRunner) -> Iterator[None]:
    """The loop of a worker process, here, ended with the test."""
    yield
    worker.stop()
    close_threads()  # no connection outlives the test


def send(text: str) -> str:
    return chat(ALICE, Send(message=text)).run_id


def cancelled(run_id: str) -> Run:
    """The run, which ended as one that was stopped: in its row, on its stream, and its thread is free."""
    store = get_store()
    run = store.get_run(run_id)
    assert run is not None
    assert (run.status, run.error_code) == ("cancelled", None)
    told, end = (row.frame for row in store.read_frames(run_id, 0)[-2:])
    assert (json.loads(told or "{}"), end) == ({"kind": "cancelled"}, None)
    assert store.active_run_for_thread(run.thread_id) is None
    return run


@contextmanager
def working(run_id: str) -> Iterator[None]:
    """A worker has the message in hand."""
    task = threading.Thread(target=tasks.run_turn, args=(run_id,))
    task.start()
    yield
    task.join(PATIENCE)
    assert not task.is_alive()


def keys(run_id: str) -> list[str | None]:
    return [row.step_key for row in get_store().usage_of_run(run_id)]


def test_a_queued_run_is_settled_at_once_and_its_message_changes_nothing() -> None:
    run_id = send("Hello")
    assert cancel(ALICE, run_id)
    run = cancelled(run_id)
    tasks.run_turn(run_id)
    assert get_store().get_run(run_id) == run
    assert (run.attempt, keys(run_id)) == (0, [])


def test_a_model_call_is_broken_off_and_on_the_ledger(tmp_path: Path) -> None:
    run_id = send(f"hold {tmp_path}")
    with working(run_id):
        until((tmp_path / "asked-0").exists)
        assert cancel(ALICE, run_id)
    cancelled(run_id)
    assert keys(run_id) == ["llm:0#1.1"]


def test_a_tool_finishes_and_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "go-0").touch()
    run_id = send(f"tool {tmp_path}")
    with working(run_id):
        until((tmp_path / "asked-tool").exists)
        assert cancel(ALICE, run_id)
        (tmp_path / "go-tool").touch()
    run = cancelled(run_id)
    detail = get_store().get_thread(run.thread_id)
    assert detail is not None
    assert [result["output"] for result in detail.messages[-1].tool_results or ()] == ["done"]
    assert keys(run_id) == ["llm:0"]


def test_a_run_that_waits_for_a_person_is_settled_at_once() -> None:
    store, run_id = get_store(), send("Hello")
    lease = store.claim_run(run_id, "w1", 60)
    assert lease is not None
    assert store.park_run(lease, [])
    assert cancel(ALICE, run_id)
    run = cancelled(run_id)
    tasks.run_turn(run_id)
    assert store.get_run(run_id) == run


def test_a_finished_run_is_unknown() -> None:
    run_id = send("Hello")
    tasks.run_turn(run_id)
    before = get_store().get_run(run_id)
    with pytest.raises(NotFound):
        cancel(ALICE, run_id)
    assert get_store().get_run(run_id) == before
