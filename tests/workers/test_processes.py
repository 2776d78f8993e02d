"""A turn whose workers are stopped and killed ends once: one transcript, one set of ledger rows, one end."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.domain.actor import Actor
from agent.domain.runs import Run
from agent.flows.admission import chat
from agent.flows.cancel import cancel
from agent.flows.recovery import recover
from agent.flows.starts import Send
from agent.store import get_store
from tests.workers.conftest import StartWorker
from tests.workers.process import until

ALICE = Actor("alice")


def send(folder: Path, word: str = "look") -> str:
    folder.mkdir()
    return chat(ALICE, Send(message=f"{word} {folder}")).run_id


def run_of(run_id: str) -> Run:
    run = get_store().get_run(run_id)
    assert run is not None
    return run


def over(run_id: str) -> bool:
    return run_of(run_id).settled_at is not None and any(
        row.frame is None for row in get_store().read_frames(run_id, 0)
    )


def check_end(run_id: str, *, broken: list[str], attempt: int, retries: int) -> None:
    store, run = get_store(), run_of(run_id)
    detail = store.get_thread(run.thread_id)
    assert detail is not None
    assert (run.status, run.error_code, run.attempt, run.retries) == ("completed", None, attempt, retries)
    assert [message.content for message in detail.messages][1:] == ["Looking.", "Seven is here."]
    assert detail.summary.active_run_id is None
    keys = [str(row.step_key) for row in store.usage_of_run(run_id)]
    assert sorted(keys) == sorted(["llm:0", "llm:1", *broken])
    rows = store.read_frames(run_id, 0)
    assert [row.seq for row in rows if row.frame is None] == [len(rows)]


def test_a_worker_that_is_stopped_leaves_at_a_border_and_one_that_is_killed_is_taken_over(
    worker: StartWorker, tmp_path: Path
) -> None:
    folder = tmp_path / "turn"
    first = worker(WORKER_LEASE="60").ready()
    run_id = send(folder)
    until((folder / "asked-0").exists)
    first.ask_to_stop()
    until(lambda: "Warm shutdown" in first.told or "warm shutdown" in first.told)
    (folder / "go-0").touch()
    assert first.wait() == 0, first.told
    left = run_of(run_id)
    assert (left.status, left.lease_owner, left.effect_name) == ("queued", None, None)

    second = worker(WORKER_LEASE="60").ready()  # the run was sent again at once
    until((folder / "asked-1").exists)
    second.kill()
    assert run_of(run_id).status == "running"
    assert recover() == 0  # its lease is good for a minute

    worker(pool="threads").ready()  # on the same host, where the one that is named in the lease does not exist
    (folder / "go-1").touch()
    until(lambda: over(run_id))
    check_end(run_id, broken=["llm:1#2.1"], attempt=3, retries=1)


@pytest.mark.once  # how a worker ends does not depend on the database
def test_a_cold_shutdown_breaks_the_call_off_in_time_and_a_cancel_reaches_a_worker(
    worker: StartWorker, tmp_path: Path
) -> None:
    folder, other = tmp_path / "turn", tmp_path / "other"
    first = worker(pool="threads", REMAP_SIGTERM="SIGQUIT").ready()
    run_id, stopped = send(folder), send(other)
    until((folder / "asked-0").exists)
    until((other / "asked-0").exists)
    assert cancel(ALICE, stopped)
    until(lambda: over(stopped))  # at the next heartbeat
    assert run_of(stopped).status == "cancelled"
    first.ask_to_stop()
    until(lambda: run_of(run_id).status == "queued")
    first.wait()

    worker(pool="prefork").ready()
    (folder / "go-0").touch()
    (folder / "go-1").touch()
    until(lambda: over(run_id))
    check_end(run_id, broken=["llm:0#1.1"], attempt=2, retries=1)


@pytest.mark.once
def test_a_worker_does_not_start_before_migrate(worker: StartWorker, tmp_path: Path) -> None:
    early = worker(pool="solo", DATABASE_URL=f"sqlite:///{tmp_path}/empty.sqlite3")
    assert early.wait() != 0
    assert "agent.E001" in early.told
    assert "migrate" in early.told
