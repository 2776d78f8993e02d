"""Two racing processes on the database of the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.edges.server import database_url

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 2

Calls = Sequence[tuple[str, dict[str, Any]]]
Race = Callable[[Calls], list[Any]]


class Racer:
    def __init__(self) -> None:
        environment = {**os.environ, "DATABASE_URL": database_url(), "PYTHONPATH": os.fspath(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.races.racer"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "a racing process has ended"
        return line

    def end(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def racers(django_db_setup: None, django_db_blocker: Any) -> Iterator[list[Racer]]:
    with django_db_blocker.unblock():
        started = [Racer() for _ in range(PROCESSES)]
    yield started
    for racer in started:
        racer.end()


@pytest.fixture
def race(transactional_db: None, racers: list[Racer]) -> Race:
    """Run calls at once, dealt out to the processes in turn; their outcomes in the order of the calls."""

    def run(calls: Calls) -> list[Any]:
        connection.close()
        hands = [list(range(first, len(calls), PROCESSES)) for first in range(PROCESSES)]
        for racer, hand in zip(racers, hands, strict=True):
            racer.tell(json.dumps([calls[place] for place in hand]))
        for racer in racers:
            assert racer.hear() == "ready\n"
        for racer in racers:
            racer.tell("go")
        outcomes: list[Any] = [None] * len(calls)
        for racer, hand in zip(racers, hands, strict=True):
            for place, outcome in zip(hand, json.loads(racer.hear()), strict=True):
                outcomes[place] = outcome
        return outcomes

    return run
