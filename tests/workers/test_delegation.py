"""An agent that asks another one leaves its worker, and whoever is killed meanwhile, the answer comes once."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.store import get_store
from tests.workers.conftest import StartWorker
from tests.workers.process import until
from tests.workers.test_processes import over, run_of, send


@pytest.mark.once  # how workers meet does not depend on the database
def test_a_run_that_awaits_another_holds_no_worker_and_a_killed_one_is_taken_over(
    worker: StartWorker, tmp_path: Path
) -> None:
    folder = tmp_path / "turn"
    first = worker(pool="solo").ready()  # one at a time: who waits must have left
    run_id = send(folder, "ask")
    until((folder / "asked-0").exists)
    parent = run_of(run_id)
    (child,) = get_store().open_children(run_id)
    assert (parent.status, parent.lease_owner, child.status) == ("waiting", None, "running")
    first.kill()

    worker(pool="solo").ready()
    (folder / "go-0").touch()
    until(lambda: over(run_id))
    assert (run_of(run_id).status, run_of(child.id).status, run_of(child.id).attempt) == ("completed", "completed", 2)
    detail = get_store().get_thread(parent.thread_id)
    assert detail is not None
    assert [message.content for message in detail.messages][1:] == ["Asking.", "Seven is here."]
    assert [row["output"] for row in detail.messages[1].tool_results or ()] == [{"text": "Here."}]
    assert sorted(str(row.step_key) for row in get_store().usage_of_run(child.id)) == ["llm:0", "llm:0#1.1"]
