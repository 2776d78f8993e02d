"""B43: however many turns a served process has driven, its connections to the database are those of the first few."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agent.db import DB_THREADS, REQUEST_THREADS, TOOL_THREADS
from agent.models import Run
from tests.edges.server import Server, serve
from tests.edges.streams import ask, chat, eventually, hang_up_all, in_parallel

ROOT = Path(__file__).resolve().parents[2]
TURNS = 500
OTHERS = 4  # the frames' writer, the listener, the upkeep, what looks for outcomes
STARTS = ("threading.Thread", "ThreadPoolExecutor", "run_in_executor", "to_thread", "sync_to_async")
# Who starts threads beside `agent.db`, whose pools close the connections of each thread that ends.
CLOSE_THEIRS = {"agent/db.py", "agent/asgi.py", "agent/runners/proposals.py", "agent/starting.py"}
ASK_THE_DATABASE_NOTHING = {
    "agent/api/downloads.py": "reads a file",
    "agent/api/sse.py": "closes connections",
    "agent/providers/_library/clients.py": "imports a vendor's library",
    "agent/providers/pydantic_ai.py": "imports a vendor's library",
    "agent/runners/celery.py": "speaks to the broker",
    "agent/runners/drivers.py": "a loop, whose units of work go through `in_db`",
    "agent/sinks/broadcast.py": "speaks to the channel layer",
    "agent/sinks/listener.py": "hears the channel layer",
    "agent/sinks/outbox.py": "speaks to Redis",
    "agent/sinks/pump.py": "a loop, whose units of work go through `in_db`",
}


@pytest.fixture(params=["daphne", "uvicorn"])
def server(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[Server]:
    User.objects.create_user("alice", password="demo")
    with serve(request.param) as served:
        connection.close()
        yield served
        hang_up_all()


def turn(server: Server, message: str) -> None:
    stream = chat(server, message)
    assert stream.rest()[-1] == ("done", None, {})
    stream.hang_up()


@pytest.mark.once
def test_five_hundred_turns_leave_no_more_connections_than_a_few(server: Server) -> None:
    in_parallel(lambda number: turn(server, "order 1042"), range(20))
    bound = DB_THREADS + REQUEST_THREADS + TOOL_THREADS + OTHERS
    seen = []
    for _ in range(4):
        in_parallel(lambda number: turn(server, "order 1042" if number % 2 else "Hello"), range(TURNS // 4))
        assert eventually(lambda: not Run.objects.filter(settled_at=None).exists())
        assert ask(server, "GET", "/agent/threads")[0] == 200
        seen.append(server.open_databases())
    assert Run.objects.filter(status="completed").count() == 20 + TURNS
    assert max(seen) <= bound
    assert seen[-1] <= max(seen[:2]) + OTHERS  # it does not grow with the turns


def called(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}


@pytest.mark.once
def test_nobody_starts_a_thread_whose_connections_nobody_closes() -> None:
    paths = [path for folder in ("agent", "governance") for path in sorted((ROOT / folder).rglob("*.py"))]
    ours = {path.relative_to(ROOT).as_posix(): called(path) for path in paths if "testing" not in path.parts}
    starting = {name for name, calls in ours.items() if any(call.endswith(STARTS) for call in calls)}
    assert starting == CLOSE_THEIRS | ASK_THE_DATABASE_NOTHING.keys()
    assert {name for name in CLOSE_THEIRS if "connections.close_all" not in ours[name]} == set()
    for name in ASK_THE_DATABASE_NOTHING:
        asked = {call for call in ours[name] if ".objects" in call or call in {"get_store", "connection.cursor"}}
        assert asked == set(), name
