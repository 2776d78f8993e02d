"""B44: the database restarts under an open socket and an open stream; at most one answer fails, then all is well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agent.models import Run
from tests.edges.server import Server, serve
from tests.edges.sockets import phone, session_of
from tests.edges.streams import Stream, chat, eventually, hang_up_all

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_on("postgresql")]


@pytest.fixture
def server() -> Iterator[Server]:
    with serve("daphne") as served:
        yield served
        hang_up_all()
        assert eventually(lambda: not Run.objects.filter(settled_at=None).exists())


def cut() -> int:
    """End every session but ours, as a restart of the server does; how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        ended: int = cursor.fetchone()[0]
        return ended


def test_an_open_socket_and_an_open_stream_heal(server: Server, tmp_path: Path) -> None:
    alice = User.objects.create_user("alice", password="demo")
    gate = tmp_path / "gate"
    with phone(server, session_of(alice)) as line:
        assert line.ask("send", message="Hello")["type"] == "meta"
        line.until(lambda said: said["type"] == "done")
        stream = chat(server, f"hold {gate}")
        assert eventually(lambda: Run.objects.filter(status="running").exists())
        assert cut() > 0
        gate.touch()
        first = line.ask("send", message="Are you there?")
        again = line.ask("send", message="And now?")
        assert first["type"] in {"meta", "error"}
        assert again["type"] == "meta", again
        said = line.until(lambda said: said["type"] in {"done", "error"} and said.get("runId") == again["runId"])
        assert said[-1]["type"] == "done"
        run_id = stream["X-Agent-Run-Id"]
        seen = stream.rest()
    assert eventually(lambda: Run.objects.get(pk=run_id).status == "completed")
    replay = Stream(server, "GET", f"/agent/chat/{run_id}/stream").rest()
    assert replay[-1][0] == "done"
    assert {number for _, number, _ in seen} <= {number for _, number, _ in replay}
