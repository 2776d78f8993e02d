"""What the second process of the contract of sinks does: see `sink_process`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from django.db import connections
from django.utils.module_loading import import_string

from agent.db import close_threads
from agent.store import get_store


class _Here:
    """What the process does; each method is one that can be asked for."""

    def __init__(self) -> None:
        self._sink: Any = None

    def use(self, sink: str, options: Mapping[str, Any], databases: Mapping[str, str]) -> bool:

        for alias, name in databases.items():
            connections.settings[alias]["NAME"] = connections[alias].settings_dict["NAME"] = name
        self.rest()
        self._sink = import_string(sink)(get_store(), **options)
        return True

    def rest(self) -> bool:
        """Let go of the database until `use` is said again."""

        if self._sink is not None:
            self._sink.stop()
        self._sink = None
        close_threads()
        connections.close_all()
        return True

    def has(self, run: str) -> bool:
        return bool(self._sink.has(run))

    def write(self, run: str, attempt: int, frames: list[dict[str, Any]]) -> bool:
        async def play() -> None:
            writer = self._sink.open(run, attempt)
            for frame in frames:
                writer.write(frame)
                await writer.flush()
            writer.abandon()

        asyncio.run(play())
        return True

    def follow(self, run: str, after: int, tell_at: int = 0) -> dict[str, list[Any]]:
        """Follow to the end; says so when it begins, and when it has seen that many rows."""

        async def play() -> list[Any]:
            seen = []
            async with asyncio.timeout(60):
                async for row in self._sink.subscribe(run, after):
                    seen.append((row, time.monotonic()))
                    if len(seen) == tell_at:
                        _say(True)
            return seen

        _say(True)
        rows = asyncio.run(play())
        return {
            "rows": [[row.seq, row.frame, row.error] for row, _ in rows],
            "at": [at for _, at in rows],
        }


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def serve() -> None:
    """Answer until the input ends."""
    here = _Here()
    for line in sys.stdin:
        asked = json.loads(line)
        _say(getattr(here, asked.pop("do"))(**asked))
