"""Processes that serve turns on request, so that stores can be measured in turn and see the same load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


class Child:
    """A process that answers a JSON line with a JSON line; its first line says which versions it runs."""

    def __init__(self, argv: Sequence[str], env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            argv,
            env={**os.environ, **env},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.versions: dict[str, str] = self.answer()

    def ask(self, **question: object) -> Any:
        assert self._process.stdin is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        return self.answer()

    def answer(self) -> Any:
        """The next line; some questions have two answers."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a measured process ended with {self._process.wait()}; what it wrote is above")
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def child(argv: Sequence[str], **env: str) -> Iterator[Child]:
    """The process, for as long as the block runs."""
    made = Child(argv, env)
    try:
        yield made
    finally:
        made.close()


def worker(store: str, url: str) -> AbstractContextManager[Child]:
    """A process of ours on this store."""
    env = {"DJANGO_SETTINGS_MODULE": "bench.settings", "BENCH_STORE": store, "DATABASE_URL": url}
    return child([sys.executable, "-m", "bench.worker"], **env)
