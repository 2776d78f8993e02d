"""A Celery worker in a process of its own, on the database of the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tests.edges.server import database_url

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


def until(true: Callable[[], object], *, seconds: float = PATIENCE) -> None:
    """Wait for something that another process does."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if true():
            return
        pause.wait(0.02)
    raise TimeoutError("It did not come about.")


class Worker:
    """`ready` once it takes messages."""

    def __init__(
        self,
        broker: str,
        queue: str,
        log: Path,
        *,
        pool: str = "prefork",
        app: str = "tests.workers.app",
        **environment: str,
    ) -> None:
        self.log = log
        command = [sys.executable, "-m", "celery", "-A", app, "worker", "--pool", pool]
        command += ["--concurrency", "2", "--loglevel", "info", "--without-gossip", "--without-mingle"]
        settings = {
            "DATABASE_URL": database_url(),
            "DJANGO_SETTINGS_MODULE": "tests.workers.settings",
            "WORKER_BROKER": broker,
            "WORKER_QUEUE": queue,
            "PYTHONPATH": os.fspath(ROOT),
        }
        with log.open("w") as out:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **settings, **environment},
                stdout=out,
                stderr=out,
                start_new_session=True,  # its pool dies with it
            )

    @property
    def told(self) -> str:
        return self.log.read_text(errors="replace")

    def ready(self) -> Worker:
        """Wait until it takes messages."""
        until(lambda: " ready." in self.told or self._process.poll() is not None)
        assert self._process.poll() is None, self.told
        return self

    def ask_to_stop(self) -> None:
        """SIGTERM, to the main process alone, as a supervisor sends it."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float = 30) -> int:
        """Its exit code."""
        return self._process.wait(timeout=seconds)

    def kill(self) -> None:
        """SIGKILL, to all of its processes."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
