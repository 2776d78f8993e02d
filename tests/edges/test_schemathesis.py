"""A machine reads our OpenAPI document and tries everything it says, and what it forbids, on a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agent.actors import actor_of
from agent.domain.commands import AppendMessage, NewRun
from agent.domain.ids import new_id
from agent.domain.queue import NewQueuedMessage
from agent.models import Run
from agent.store import get_store
from tests.edges.server import ROOT, serve

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]

SECONDS = 10
# 501 is the contract's answer for a capability that is not there: documented, and no failure of the server.
CONFIGURATION = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "501"]
"""
SEED = 20261130
# What the document cannot promise to a machine that knows no thread: see the sentence of each.
LEFT_OUT = {
    "positive_data_acceptance": "a lawful id of a thread that nobody has is a lawful 404",
}


def test_every_operation_keeps_what_the_document_promises(tmp_path: Path) -> None:
    user = User.objects.create_user("alice", password="demo")
    actor = actor_of(user)
    assert actor is not None
    thread = get_store().create_thread(actor=actor, title="Lamps")
    message = get_store().append_message(AppendMessage(thread_id=thread.id, role="assistant", content="Hello"))
    run_id = new_id()
    get_store().create_run(NewRun(id=run_id, thread_id=thread.id, actor=actor, input={}))
    get_store().set_active_run(thread.id, run_id)  # so that messages wait
    waiting = NewQueuedMessage(thread_id=thread.id, actor=actor, content="And then?")
    queued = [get_store().enqueue_message(waiting).id for _ in range(2)]
    connection.close()
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    with serve("uvicorn") as server:
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/agent/schema"),
            *("--auth", "alice:demo", "--checks", "all", "--exclude-checks", ",".join(LEFT_OUT)),
            *("--phases", "examples,coverage,fuzzing", "--max-time", str(SECONDS), "--max-examples", "5"),
            *("--seed", str(SEED), "--workers", "2", "--request-timeout", "20", "--continue-on-failure"),
            *("--suppress-health-check", "all", "--warnings", "off", "--no-color"),
        ]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SCHEMATHESIS_HOOKS": "tests.edges.live.lawful",
            "THREAD_ID": thread.id,
            "MESSAGE_ID": message.id,
            "QUEUED_ID": queued[0],
        }
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert Run.objects.filter(status="completed").exists()  # it was let in, and agents answered it
