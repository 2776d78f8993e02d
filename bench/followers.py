"""What followers of live runs cost a serving process: the time of other requests, and memory.

`.venv/bin/python -m bench.followers [--followers 100,500] [--server daphne,uvicorn] [--json FILE]`

Ten runs write fifty deltas a second each. First other requests are timed while the runs are live and nobody follows,
then while so many clients follow them, each on a connection of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field

from bench.agents import LONG_QUESTION
from bench.figures import Spread
from bench.http import LOG_IN, SETTINGS, manage, served
from bench.machine import child_with, resident_bytes
from bench.report import Report, bench
from tests.services.postgres import postgres_server

RUNS = 10
ASKED = 100  # other requests that are timed
PAUSE = 0.03  # seconds between them
GOAL_TIMES, GOAL_KB = 2.0, 200.0
ATTACH_AT_ONCE = 20


@dataclass(slots=True)
class Crowd:
    """Clients that follow; `frames` counts what they have been sent, so that it is known that they are fed."""

    port: int
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    frames: int = 0

    async def join(self, session: str, run_id: str) -> None:
        """One more follower; returns when its stream has begun."""
        reader, writer = await _request(self.port, session, "GET", f"/agent/chat/{run_id}/stream")
        await reader.readuntil(b"event: meta")
        self.tasks.append(asyncio.create_task(self._read(reader, writer)))

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65536):
                self.frames += piece.count(b"id: ")
        finally:
            writer.close()

    async def leave(self) -> None:
        for task in self.tasks:
            task.cancel()
        for task in self.tasks:
            with suppress(asyncio.CancelledError):
                await task


async def _request(
    port: int, session: str, method: str, path: str, body: str = ""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    token = secrets.token_hex(16)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Cookie: sessionid={session}; csrftoken={token}\r\nX-CSRFToken: {token}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write((head + body).encode())
    return reader, writer


async def _start(port: int, session: str) -> str:
    """A run that goes on without its first follower."""
    reader, writer = await _request(port, session, "POST", "/agent/chat", json.dumps({"message": LONG_QUESTION}))
    meta = await reader.readuntil(b"event: meta\n")
    line = await reader.readuntil(b"}\n")
    writer.close()
    assert b" 200 " in meta, meta
    return str(json.loads(line.partition(b"data: ")[2])["runId"])


async def _other_requests(port: int, session: str) -> Spread:
    """How long the list of conversations takes, in milliseconds."""
    seconds = []
    for _ in range(ASKED):
        began = time.perf_counter()
        reader, writer = await _request(port, session, "GET", "/agent/threads")
        answer = await reader.read()
        seconds.append(time.perf_counter() - began)
        writer.close()
        assert b" 200 " in answer[:20], answer[:200]
        await asyncio.sleep(PAUSE)
    return Spread.of(seconds).scaled(1000)


async def _measured(port: int, sessions: list[str], followers: int) -> dict[str, object]:
    *speakers, bystander = sessions
    await _other_requests(port, bystander)  # warms up
    runs = [await _start(port, session) for session in speakers]
    idle = await _other_requests(port, bystander)
    pid, crowd = child_with(str(port)), Crowd(port)
    before = resident_bytes(pid)
    for first in range(0, followers, ATTACH_AT_ONCE):
        few = range(first, min(first + ATTACH_AT_ONCE, followers))
        await asyncio.gather(*(crowd.join(speakers[each % RUNS], runs[each % RUNS]) for each in few))
    frames, began = crowd.frames, time.perf_counter()
    busy = await _other_requests(port, bystander)
    fed = (crowd.frames - frames) / (time.perf_counter() - began)
    memory = (resident_bytes(pid) - before) / followers / 1000
    await crowd.leave()
    return {"idle": idle, "busy": busy, "times": busy.p95 / idle.p95, "kB": memory, "framesASecond": fed}


def run(report: Report, arguments: argparse.Namespace) -> None:
    """Every server with every number of followers, each in a fresh process."""
    rows, results = [], {}
    with postgres_server(durable=True, options=["max_connections=300"]) as url:
        env = {**os.environ, "DJANGO_SETTINGS_MODULE": SETTINGS, "DATABASE_URL": url}
        manage("migrate", "--verbosity", "0", env=env)
        printed = manage("shell", "-c", LOG_IN.format(clients=RUNS + 1), env=env)
        sessions = [line.split()[1] for line in printed.splitlines() if line.startswith("session ")]
        for kind in arguments.server.split(","):
            for followers in map(int, arguments.followers.split(",")):
                with served(kind, env) as port:
                    found = asyncio.run(_measured(port, sessions, followers))
                idle, busy = found["idle"], found["busy"]
                assert isinstance(idle, Spread)
                assert isinstance(busy, Spread)
                rows.append(
                    (
                        kind,
                        followers,
                        idle.p50,
                        idle.p95,
                        busy.p50,
                        busy.p95,
                        found["times"],
                        found["kB"],
                        found["framesASecond"],
                    )
                )
                results[f"{kind} {followers}"] = {**found, "idle": idle.to_json(), "busy": busy.to_json()}
    heads = ("server", "followers", "idle p50 ms", "p95", "followed p50 ms", "p95", "times", "kB each", "frames/s")
    report.table(heads, rows)
    report.say(f"goals: under {GOAL_TIMES} times the idle p95, under {GOAL_KB:.0f} kB a follower")
    report.results |= {"goalTimes": GOAL_TIMES, "goalKB": GOAL_KB, **results}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.followers", description=__doc__)
    parser.add_argument("--followers", default="100,500")
    parser.add_argument("--server", default="daphne,uvicorn")
    return parser


if __name__ == "__main__":
    bench("followers", _parser(), run)
