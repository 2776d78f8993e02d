"""The same with whole processes, one story a database: nothing is inherited, and nothing is left of who died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import celery
import pytest

from agent.flows import dispatch
from agent.models import Run
from agent.runners.celery import CeleryRunner
from tests.crash.conftest import LAPSED, Desk, Parent, environment
from tests.crash.ending import ended, ending, repeated
from tests.crash.scenarios import begin, check_effects, expected, undisturbed
from tests.crash.test_proposed import approved, effects, stored, told
from tests.edges.server import database_url
from tests.workers.process import ROOT, Worker, until


def alone(**order: object) -> int:
    """Let a process of its own do it; its exit code."""
    command = [sys.executable, "-m", "tests.crash.alone", json.dumps(order)]
    return subprocess.run(command, cwd=ROOT, env=environment(database_url()), check=False, timeout=60).returncode


def test_a_process_dies_in_a_tool_and_another_one_goes_on(desk: Desk, parent: Parent) -> None:
    whole = undisturbed(desk, "plain", parent.known)
    run_id, log = begin(desk, "plain"), os.fspath(desk.log)
    assert alone(run=run_id, at="tool:weigh:end", log=log) == -signal.SIGKILL
    again = expected(Run.objects.get(pk=run_id))
    assert alone(ahead=LAPSED, log=log) == 0
    assert repeated(run_id) == again
    check_effects(desk, again, "plain")
    assert ending(run_id) == whole
    assert ended(run_id)


@pytest.fixture
def queue(redis_url: str) -> Iterator[str]:
    """A queue of a real broker, to which this process sends."""
    conf, name = celery.current_app.conf, f"crash-{uuid4()}"
    before = {"broker_url": conf.broker_url, "task_default_queue": conf.task_default_queue}
    conf.update(broker_url=redis_url, task_default_queue=name)
    sender = CeleryRunner()
    held = dispatch.use(sender)
    yield name
    dispatch.use(held)
    sender.stop(5)
    conf.update(before)


@pytest.fixture
def worker(desk: Desk, redis_url: str, queue: str, tmp_path: Path) -> Callable[..., Worker]:
    def start(**plan: str | int) -> Worker:
        told = {"CRASH_PLAN": json.dumps({**plan, "log": os.fspath(desk.log)})}
        log = tmp_path / f"worker-{'-'.join(plan)}.log"
        settings = {"DJANGO_SETTINGS_MODULE": "tests.crash.settings", **told}
        return Worker(redis_url, queue, log, pool="threads", app="tests.crash.app", **settings)

    return start


def test_a_worker_of_celery_dies_in_a_model_call_and_another_one_goes_on(
    desk: Desk, parent: Parent, worker: Callable[..., Worker]
) -> None:
    whole = undisturbed(desk, "plain", parent.known)

    first = worker(at="model:1:3")
    try:
        run_id = begin(desk, "plain")
        assert first.wait(60) == -signal.SIGKILL
    finally:
        first.kill()
    again = expected(Run.objects.get(pk=run_id))
    second = worker()  # on the same host, where the one that is named in the lease does not exist any more
    try:
        until(lambda: ended(run_id))
    finally:
        second.kill()
    assert repeated(run_id) == again
    check_effects(desk, again, "plain")
    assert ending(run_id) == whole


def test_a_worker_of_celery_dies_in_an_action_and_the_sweep_of_another_one_ends_it_under_the_same_key(
    desk: Desk, worker: Callable[..., Worker]
) -> None:
    proposal = approved(desk, "refunds")  # which sends it
    first = worker(at="tool:refund:end")
    try:
        assert first.wait(60) == -signal.SIGKILL
    finally:
        first.kill()
    second = worker(ahead=LAPSED)  # the broker keeps the message of the dead for an hour, and some come twice
    try:
        for task, args in (("agent.sweep_proposals", []), *[("agent.execute_proposal", [proposal.id])] * 2):
            celery.current_app.send_task(task, args=args, ignore_result=True)
        until(lambda: told(proposal))
        second.ask_to_stop()
        assert second.wait() == 0
    finally:
        second.kill()
    done = stored(proposal)
    assert done.execution is not None
    assert (done.execution.status, done.execution.generation, told(proposal)) == ("succeeded", 2, 1)
    assert effects(desk) == [proposal.asked.idempotency_key] * 2
