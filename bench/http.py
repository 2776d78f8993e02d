"""Many clients over real HTTP, logged in by session: turns a second and the time to the first byte, one process.

`.venv/bin/python -m bench.http [--clients N] [--turns N] [--server daphne|uvicorn] [--json FILE]`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from bench.agents import DELTAS, QUESTION
from bench.figures import Spread
from bench.report import Report, bench
from tests.services.postgres import postgres_server

SETTINGS = "bench.http_settings"
GOAL_TURNS = 100  # a second
SERVERS = {
    "daphne": ("daphne", "-v", "0", "-b", "127.0.0.1", "-p"),
    "uvicorn": ("uvicorn", "--host", "127.0.0.1", "--lifespan", "off", "--log-level", "warning", "--port"),
}
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
LOG_IN = """
from django.contrib.auth.models import User
from django.test import Client
for number in range({clients}):
    client = Client()
    client.force_login(User.objects.create(username=f"client-{{number}}"))
    print("session", client.cookies["sessionid"].value)
"""


@dataclass(frozen=True, slots=True)
class Turn:
    first: float  # seconds until the first byte of the answer
    done: float
    deltas: int


async def turn(port: int, session: str) -> Turn:
    """One message on a connection of its own, followed to its end."""
    token = secrets.token_hex(16)
    body = json.dumps({"message": QUESTION})
    head = (
        f"POST /agent/chat HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Cookie: sessionid={session}; csrftoken={token}\r\nX-CSRFToken: {token}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    started = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write((head + body).encode())
    answer = await reader.read(65536)
    first = time.perf_counter() - started
    answer += await reader.read()
    writer.close()
    if b"event: done" not in answer:
        raise SystemExit(f"a turn did not end well: {answer[-500:]!r}")
    return Turn(first, time.perf_counter() - started, answer.count(b'"kind":"text"'))


async def crowd(port: int, sessions: list[str], turns: int) -> tuple[list[Turn], float]:
    """Each client sends its turns one after another; all clients at once."""

    async def client(session: str) -> list[Turn]:
        return [await turn(port, session) for _ in range(turns)]

    started = time.perf_counter()
    done = await asyncio.gather(*map(client, sessions))
    return [each for of_one in done for each in of_one], time.perf_counter() - started


def manage(*command: str, env: dict[str, str]) -> str:
    argv = [sys.executable, "manage.py", *command]
    return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout


@contextmanager
def served(kind: str, env: dict[str, str]) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    argv = [sys.executable, "-m", *SERVERS[kind], str(port), "bench.http_site:application"]
    process = subprocess.Popen(argv, env=env)
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextmanager
def watched(url: str) -> Iterator[list[int]]:
    """How many connections the database had, ten times a second, ours left out."""
    seen, ended = [0], threading.Event()

    def watch() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not ended.wait(0.1):
                row = connection.execute(CONNECTIONS).fetchone()
                seen.append(0 if row is None else int(row[0]))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        ended.set()
        watching.join()


def run(report: Report, arguments: argparse.Namespace) -> None:
    """A round to warm up, then the measured one, for each server."""
    rows: list[tuple[object, ...]] = []
    results: dict[str, dict[str, object]] = {}
    with postgres_server(durable=True) as url:  # with its default of 100 connections
        env = {**os.environ, "DJANGO_SETTINGS_MODULE": SETTINGS, "DATABASE_URL": url}
        env |= {"BENCH_POOL": "1"} if arguments.pool else {}
        manage("migrate", "--verbosity", "0", env=env)
        printed = manage("shell", "-c", LOG_IN.format(clients=arguments.clients), env=env)
        sessions = [line.split()[1] for line in printed.splitlines() if line.startswith("session ")]
        for kind in arguments.server.split(","):
            with served(kind, env) as port:
                asyncio.run(crowd(port, sessions[:10], 2))
                with watched(url) as seen:
                    done, seconds = asyncio.run(crowd(port, sessions, arguments.turns))
            first = Spread.of([each.first for each in done]).scaled(1000)
            whole = Spread.of([each.done for each in done]).scaled(1000)
            rate = len(done) / seconds
            rows.append((kind, len(done), rate, first.p50, first.p95, whole.p50, whole.p95, max(seen)))
            results[kind] = {"turnsASecond": rate, "firstByteMs": first.to_json(), "turnMs": whole.to_json()}
            results[kind]["connections"] = max(seen)
    heads = ("server", "turns", "turns/s", "first byte p50 ms", "p95", "turn p50 ms", "p95", "connections")
    report.table(heads, rows)
    report.say(f"{arguments.clients} clients, {2 * DELTAS} deltas a turn; goal: {GOAL_TURNS} turns a second")
    report.results |= {"goalTurnsASecond": GOAL_TURNS, "clients": arguments.clients, **results}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.http", description=__doc__)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--turns", type=int, default=5, help="turns of each client")
    parser.add_argument("--pool", action="store_true", help="with Django's pool of connections")
    parser.add_argument("--server", default="daphne,uvicorn")
    return parser


if __name__ == "__main__":
    bench("http", _parser(), run)
