"""A real serving process that is asked to end: its turns end or are handed over within seconds, and it is gone."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPException
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from agent.domain.runs import Run
from agent.flows.recovery import redispatch
from agent.store import get_store
from agent.testing.turns import held_runner
from tests.edges.server import Server, basic, serve
from tests.edges.sockets import phone, session_of
from tests.edges.streams import Stream, chat, hang_up_all

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]


def until(true: Callable[[], object], *, seconds: float = 60) -> None:
    pause = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if true():
            return
        pause.wait(0.02)
    raise TimeoutError("It did not come about.")


@contextmanager
def asked(server: Server, gate: Path) -> Iterator[str]:
    """A run whose model waits for the gate, with its stream held open."""
    get_user_model().objects.create_user("ana", password="demo")
    body = json.dumps({"message": f"hold {gate}"})
    with closing(server.connect()) as connection:
        connection.request("POST", "/agent/chat", body, {"Content-Type": "application/json", **basic("ana")})
        with connection.getresponse() as response:
            assert response.status == 200, response.read()
            run_id = str(response.headers["X-Agent-Run-Id"])
            until(lambda: stored(run_id).effect_name == "llm:0")
            yield run_id


def stored(run_id: str) -> Run:
    run = get_store().get_run(run_id)
    assert run is not None
    return run


def gone(server: Server) -> bool:
    return os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


@pytest.mark.parametrize("kind", ["daphne"])
def test_a_turn_that_ends_in_time_is_completed(kind: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serve(kind) as server, asked(server, gate) as run_id:
        os.kill(server.pid, signal.SIGTERM)
        threading.Timer(1.5, gate.touch).start()  # in the middle of the grace, with the stream cut already
        until(lambda: gone(server), seconds=15)
    assert stored(run_id).status == "completed"


@pytest.mark.parametrize("kind", ["lifespan"])
def test_a_turn_that_takes_longer_is_handed_over_with_its_spend(kind: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serve(kind) as server, held_runner() as other, asked(server, gate) as run_id:
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: stored(run_id).status == "queued", seconds=20)
        assert (stored(run_id).lease_owner, stored(run_id).recoveries) == (None, 0)
        assert [row.step_key for row in get_store().usage_of_run(run_id)] == ["llm:0#1.1"]
        assert redispatch() == 1
        assert other.started == [run_id]
        gate.touch()  # the model of this site holds a thread, which the interpreter waits for
        until(lambda: gone(server), seconds=15)


@pytest.mark.parametrize(("kind", "code"), [("daphne", 4001), ("uvicorn", 1001)])
def test_sockets_are_told_that_the_server_goes_and_the_run_goes_on(kind: str, code: int, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    ana = get_user_model().objects.create_user("ana")
    with serve(kind) as server, phone(server, session_of(ana)) as line:
        run_id = str(line.ask("send", message=f"hold {gate}")["runId"])
        os.kill(server.pid, signal.SIGTERM)
        assert line.closed() == code
        gate.touch()
        until(lambda: gone(server), seconds=20)
    assert stored(run_id).status in {"completed", "queued"}


def test_another_process_goes_on_by_itself(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serve("daphne") as first, serve("uvicorn") as second, asked(first, gate) as run_id:
        os.kill(first.pid, signal.SIGKILL)
        owner = stored(run_id).lease_owner
        get_store().lapse_leases([str(owner)])  # a minute later
        until(lambda: stored(run_id).lease_owner not in {owner, None}, seconds=20)
        gate.touch()
        until(lambda: stored(run_id).settled_at is not None)
        assert not gone(second)
    assert (stored(run_id).status, stored(run_id).attempt) == ("completed", 2)


@pytest.mark.parametrize("kind", ["daphne", "lifespan"])
def test_many_open_streams_hold_nobody_up(kind: str, tmp_path: Path) -> None:
    """B37: the streams end without `done`, so clients come back; the process is gone within its grace."""
    get_user_model().objects.create_user("alice", password="demo")
    gate = tmp_path / "gate"
    try:
        with serve(kind) as server:
            first = chat(server, f"hold {gate}")
            run_id = first["X-Agent-Run-Id"]
            path = f"/agent/chat/{run_id}/stream"
            followers = [first, *(Stream(server, "GET", path) for _ in range(49))]
            assert all(follower.event() for follower in followers)
            os.kill(server.pid, signal.SIGTERM)
            threading.Timer(3, gate.touch).start()  # when all streams are cut: the model of this site holds a thread
            until(lambda: gone(server), seconds=15)
            assert not [follower for follower in followers if ended_with_done(follower)]
        with serve(kind) as server:
            until(lambda: stored(run_id).settled_at is not None)
            rest = Stream(server, "GET", path).rest()
        assert (stored(run_id).status, rest[-1][0]) == ("completed", "done")
        assert "".join(frame["text"] for _, _, frame in rest if frame.get("kind") == "text") == "At last."
    finally:
        hang_up_all()


def ended_with_done(follower: Stream) -> bool:
    """Whether a stream that was cut said that the run is over before it was."""
    try:
        said = follower.rest()
    except (OSError, HTTPException):  # cut in the middle of a chunk
        return False
    return bool(said) and said[-1][0] == "done"
