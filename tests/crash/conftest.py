"""The warm parent, and a desk that sends messages and says what is to die where."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from agent.domain.actor import Actor
from agent.flows.admission import chat
from agent.flows.starts import Send
from agent.models import Run
from agent.registry import isolated_registry
from agent.testing.turns import held_runner
from tests.crash import site
from tests.crash.ending import End
from tests.edges.server import database_url

ROOT = Path(__file__).resolve().parents[2]
ALICE = Actor("alice")
LAPSED = 61  # seconds: a recovery that is this much later finds the lease lapsed


def environment(url: str) -> dict[str, str]:
    """Of a process that may die, on this database."""
    return {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.crash.settings"}


class Parent:
    """The process that forks; see `tests.crash.parent`."""

    def __init__(self, url: str) -> None:
        self.known: dict[str, End] = {}  # ends of undisturbed turns, by scenario
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.parent"],
            cwd=ROOT,
            env=environment(url),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def order(self, **order: Any) -> int:
        """Let a child do it; its wait status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return int(json.loads(self._process.stdout.readline())["status"])

    def stop(self) -> None:
        with self._process:  # closes its pipes: it ends
            pass


@dataclass
class Desk:
    """Sends as a request does, and orders children about."""

    parent: Parent
    log: Path
    plan: dict[str, Any] = field(default_factory=dict)  # what every child of this test is told

    def send(self, message: str | None = "Where is 7, and where is 13?", **fields: Any) -> str:
        self.log.unlink(missing_ok=True)
        return chat(ALICE, Send(message=message, **{"agent": "mortal", **fields})).run_id

    def drive(self, run_id: str, **plan: Any) -> int:
        return self.parent.order(run=run_id, log=os.fspath(self.log), **self.plan, **plan)

    def kill(self, run_id: str, at: str, **plan: Any) -> Run:
        """Let a child die at the place; the run as it left it."""
        assert self.drive(run_id, at=at, **plan) == -signal.SIGKILL, f"nothing came by {at}"
        return Run.objects.get(pk=run_id)

    def drive_alone(self, run_id: str, *, at: str = "") -> int:
        """Let a child drive this run and none that it begins or wakes; its wait status."""
        return self.parent.order(alone=run_id, log=os.fspath(self.log), at=at)

    def recover(self) -> None:
        """Another process finds the run once its lease has lapsed, and works on it to its end."""
        assert self.parent.order(ahead=LAPSED, log=os.fspath(self.log), **self.plan) == 0

    def execute(self, proposal_id: str, at: str) -> None:
        """Let a child carry the proposal out, and die at the place."""
        ended = self.parent.order(proposal=proposal_id, log=os.fspath(self.log), at=at)
        assert ended == -signal.SIGKILL, f"nothing came by {at}"

    def sweep(self, *, at: str = "") -> int:
        """Another process looks for proposals, later than any lease; its wait status."""
        return self.parent.order(sweep=True, ahead=LAPSED, log=os.fspath(self.log), at=at)

    def touched(self) -> list[list[str]]:
        """What was done outside, in order."""
        return [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture(scope="module")
def parent(django_db_setup: None) -> Iterator[Parent]:
    process = Parent(database_url())
    yield process
    process.stop()


@pytest.fixture
def desk(transactional_db: None, parent: Parent, tmp_path: Path) -> Iterator[Desk]:
    settings = override_settings(AGENT={"PROVIDERS": {"scripted": "tests.crash.site.Model"}})
    with isolated_registry(), held_runner(), settings:
        site.declare()
        yield Desk(parent, tmp_path / "touched")
