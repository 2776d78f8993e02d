"""What a process of ours answers: turns, their counts, and the memory that it holds."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from django.core.management import call_command
from django.db import connection

from bench import counting, crowding, loading, parking, remembering
from bench.machine import resident_bytes
from bench.settings import IN_MEMORY
from bench.turns import BIG, SMALL, Turns


def _versions() -> dict[str, str]:
    if IN_MEMORY or connection.vendor == "sqlite":
        return {}
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return {connection.vendor: str(cursor.fetchone()[0])}


def _big(turns: Turns, asked: dict[str, Any]) -> list[dict[str, float | None]]:
    done = [turns.run(BIG, followed=asked["followed"]) for _ in range(asked["turns"])]
    for each in done:
        each.check()
    return [each.sample.to_json() for each in done]


def _counted(turns: Turns, asked: dict[str, Any]) -> dict[str, Any]:
    """The most of a few turns: how text is cut into frames depends on the timing, and a goal is for every turn."""
    found: list[counting.Counts] = []
    for _ in range(asked["turns"]):
        with counting.counted() as counts:
            done = turns.run(BIG, followed=asked["followed"])
        done.check()
        found.append(counts)
    told = [counts.to_json() for counts in found]
    return {"most": {name: max(each[name] for each in told) for name in told[0]}, "log": found[-1].log}


def _small(turns: Turns, asked: dict[str, Any]) -> dict[str, int]:
    for _ in range(asked["turns"]):
        turns.run(SMALL, followed=True).check()
    gc.collect()
    return {"rss": resident_bytes()}


def _seed(turns: Turns, asked: dict[str, Any]) -> dict[str, str]:
    """Threads of these lengths, by their length."""
    seeded = {str(length): loading.seed(length) for length in asked["lengths"]}
    loading.settle()
    return seeded


def _load(turns: Turns, asked: dict[str, Any]) -> list[dict[str, float]]:
    return loading.timed(asked["thread"], asked["times"])


def _read(turns: Turns, asked: dict[str, Any]) -> dict[str, int]:
    return loading.read(asked["thread"]).to_json()


def _size(turns: Turns, asked: dict[str, Any]) -> int:
    return loading.size(asked["turns"], asked["output"], asked["window"])


def _long(turns: Turns, asked: dict[str, Any]) -> dict[str, Any]:
    """A long thread and the seconds of its first turn, which has all of it to fold."""
    thread_id = remembering.seed(asked["messages"])
    return {"thread": thread_id, "first": turns.again(thread_id).settled}


def _again(turns: Turns, asked: dict[str, Any]) -> list[dict[str, float | None]]:
    return remembering.timed(turns, asked["thread"], asked["times"])


def _looked_at(turns: Turns, asked: dict[str, Any]) -> dict[str, int]:
    return remembering.looked_at(turns, asked["thread"])


def _crowd(turns: Turns, asked: dict[str, Any]) -> dict[str, Any]:
    turns.run(SMALL, followed=True).check()  # what a first turn alone pays
    cpu = time.process_time()
    done = turns.on_loop(crowding.crowd(asked["turns"], asked["over"]))
    cpu = time.process_time() - cpu
    for each in done:
        each.check()
    return {"first": [each.first for each in done], "settled": [each.settled for each in done], "cpu": round(cpu, 2)}


def _parked(turns: Turns, asked: dict[str, Any]) -> dict[str, int]:
    return parking.park(asked["runs"])


def _approved(turns: Turns, asked: dict[str, Any]) -> dict[str, int]:
    return parking.approve()


ANSWERS: dict[str, Callable[[Turns, dict[str, Any]], Any]] = {
    "big": _big,
    "counted": _counted,
    "small": _small,
    "crowd": _crowd,
    "parked": _parked,
    "approved": _approved,
    "seed": _seed,
    "load": _load,
    "read": _read,
    "size": _size,
    "long": _long,
    "again": _again,
    "looked at": _looked_at,
}


def _lines() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def serve() -> None:
    """Make the tables, say hello, and answer until the input ends."""
    counting.watch()
    if not IN_MEMORY:
        call_command("migrate", verbosity=0)
    turns = Turns()
    print(json.dumps(_versions()), flush=True)
    for asked in _lines():
        print(json.dumps(ANSWERS[asked["do"]](turns, asked)), flush=True)
