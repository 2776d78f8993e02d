"""Behind nginx with the configuration of the documentation: frames arrive as they come, and the socket upgrades."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from tests.edges.server import Server, serve
from tests.edges.sockets import frames, phone, session_of, text
from tests.edges.streams import chat, hang_up_all
from tests.services.nginx import nginx_before

pytestmark = [pytest.mark.once, pytest.mark.needs_nginx, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def proxied(django_db_setup: None, django_db_blocker: Any) -> Iterator[Server]:
    """The site as it is reached through nginx."""
    with django_db_blocker.unblock(), serve("daphne") as served, nginx_before(served.port) as port:
        connection.close()
        yield Server(served.pid, port)


@pytest.fixture(autouse=True)
def alice() -> Iterator[User]:
    yield User.objects.create_user("alice", password="demo")
    hang_up_all()


def test_frames_arrive_while_the_model_is_still_silent(proxied: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    stream = chat(proxied, f"hold {gate}", **{"Accept-Encoding": "gzip"})
    assert stream.event() == (
        "meta",
        None,
        {"runId": stream["X-Agent-Run-Id"], "threadId": stream["X-Agent-Thread-Id"]},
    )
    assert stream.event() == ("frame", 1, {"kind": "step-start"})
    gate.touch()
    assert stream.rest()[-1] == ("done", None, {})


def test_a_socket_is_upgraded_and_knows_its_page(proxied: Server, alice: User, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with phone(proxied, session_of(alice)) as line:
        run_id = str(line.ask("send", message=f"hold {gate}")["runId"])
        line.until(lambda said: said["type"] == "frame")
        gate.touch()
        said = line.until(lambda said: said["type"] == "done")
    assert text(frames(said, run_id)) == "At last."
