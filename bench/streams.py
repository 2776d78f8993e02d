"""A process that writes and follows streams on request: `python -m bench.streams`, one JSON line each way."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

import django

django.setup()

from django.core.management import call_command

from agent.domain.actor import Actor
from agent.domain.commands import NewRun
from agent.sinks import get_sink
from agent.store import get_store

PAUSE_SECONDS = 0.02  # between frames: each is followed by itself


def _say(answer: object) -> None:
    print(json.dumps(answer), flush=True)


async def _write(run_id: str, frames: int, *, paced: bool) -> list[float]:
    """When each frame was committed."""
    writer, at = get_sink().open(run_id, 1), []
    for number in range(frames):
        writer.write({"kind": "title", "title": f"frame {number}"})
        if paced:
            await writer.flush()
            at.append(time.monotonic())
            await asyncio.sleep(PAUSE_SECONDS)
    await writer.end()
    return at


async def _follow(run_id: str, after: int) -> list[float]:
    """When each frame was here; the first answer says that the follower is."""
    at = []
    _say({"following": run_id})
    async for _ in get_sink().subscribe(run_id, after):
        at.append(time.monotonic())  # noqa: PERF401 - each at its time
    return at


async def _resume(run_id: str, after: int, times: int) -> list[float]:
    """Seconds from joining above a number until the end of a stream that is over."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        async for _row in get_sink().subscribe(run_id, after):
            pass
        seconds.append(time.perf_counter() - start)
    return seconds


def _do(asked: dict[str, Any]) -> object:
    match asked.pop("do"):
        case "run":
            get_store().create_run(NewRun(id=asked["run_id"], thread_id="bench", actor=Actor("alice"), input={}))
            return True
        case "write":
            return asyncio.run(_write(**asked))
        case "follow":
            return asyncio.run(_follow(**asked))
        case _:
            return asyncio.run(_resume(**asked))


if __name__ == "__main__":
    if os.environ.get("BENCH_MIGRATE"):
        call_command("migrate", verbosity=0)
    _say({})
    for line in sys.stdin:
        _say(_do(json.loads(line)))
