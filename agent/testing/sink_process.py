"""A second process on a sink, for the contract of sinks: `python -m agent.testing.sink_process`.

It reads a JSON line and answers with one: what to do is in `do`. It runs with the settings of DJANGO_SETTINGS_MODULE,
on the databases whose names `use` gives, so that it meets the tests on their database.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import django


class OtherProcess:
    """A process that writes and follows elsewhere. Use it as a context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> OtherProcess:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=30)

    def ask(self, do: str, **fields: object) -> Any:  # noqa: ANN401 - what is asked for
        """Say what to do, and wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:  # noqa: ANN401
        """The next answer; `follow` has two, when it is there and when the stream has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the other process ended with {self._process.wait()}")
        return json.loads(line)


class _Here:
    """What the other process does."""

    def __init__(self) -> None:
        self._sink: Any = None

    def use(self, sink: str, options: Mapping[str, Any], databases: Mapping[str, str]) -> bool:
        from django.db import connections  # noqa: PLC0415 - after the settings are read
        from django.utils.module_loading import import_string  # noqa: PLC0415

        from agent.store import get_store  # noqa: PLC0415

        for alias, name in databases.items():
            connections.settings[alias]["NAME"] = connections[alias].settings_dict["NAME"] = name
        self.rest()
        self._sink = import_string(sink)(get_store(), **options)
        return True

    def rest(self) -> bool:
        """Let go of the database until `use` is said again."""
        from django.db import connections  # noqa: PLC0415

        from agent.db import close_threads  # noqa: PLC0415

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

    def follow(self, run: str, after: int) -> dict[str, list[Any]]:
        async def play() -> list[Any]:
            async with asyncio.timeout(60):
                return [(row, time.monotonic()) async for row in self._sink.subscribe(run, after)]

        _say(True)
        rows = asyncio.run(play())
        return {
            "rows": [[row.seq, row.frame, row.error] for row, _ in rows],
            "at": [at for _, at in rows],
        }


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    django.setup()
    here = _Here()
    for line in sys.stdin:
        asked = json.loads(line)
        _say(getattr(here, asked.pop("do"))(**asked))


if __name__ == "__main__":
    main()
