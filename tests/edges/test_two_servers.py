"""Two served processes of one site: what happens by the one is seen at once by who is with the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agent.models import Run
from tests.edges.server import Server, serve
from tests.edges.sockets import frames as frames_of
from tests.edges.sockets import phone, session_of, text
from tests.edges.streams import Stream, ask, chat, eventually, hang_up_all

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]

Two = tuple[Server, Server]


@pytest.fixture
def servers(redis_url: str, transactional_db: None) -> Iterator[Two]:
    """Of two kinds, joined by the channel layer alone: each looks into the database once a minute."""
    connection.close()
    with serve("daphne", LIVE_LAYER=redis_url) as here, serve("uvicorn", LIVE_LAYER=redis_url) as there:
        yield here, there
        hang_up_all()
        assert eventually(lambda: not Run.objects.filter(settled_at=None).exists())


def test_notices_and_frames_reach_who_is_with_another_process(servers: Two, tmp_path: Path) -> None:
    here, there = servers
    session = session_of(User.objects.create_user("alice", password="demo"))
    first = chat(here, "Hello")
    first.rest()
    thread, gate = first["X-Agent-Thread-Id"], tmp_path / "gate"
    with phone(there, session) as line:
        assert line.ask("watch", threadId=thread)["type"] == "ok"
        ask(here, "PATCH", f"/agent/threads/{thread}", json.dumps({"title": "Mine"}))
        assert line.until(lambda said: said["type"] == "thread-changed")[-1]["reason"] == "title"

        turn = Stream(here, "POST", "/agent/chat", {"message": f"hold {gate}", "threadId": thread})
        run_id = turn["X-Agent-Run-Id"]
        assert line.until(lambda said: said["type"] == "thread-changed")[-1]["reason"] == "run-started"
        assert line.ask("attach", runId=run_id)["type"] == "meta"
        elsewhere = Stream(there, "GET", f"/agent/chat/{run_id}/stream")
        assert elsewhere.event() == ("meta", None, {"runId": run_id})
        gate.touch()
        line.until(lambda said: said["type"] == "done")
        assert text(frames_of(line.heard, run_id)) == "At last."
        assert elsewhere.rest()[-1][0] == "done"
        settled = {"type": "thread-changed", "threadId": thread, "reason": "run-settled"}
        assert settled in line.heard or line.until(lambda said: said == settled)
