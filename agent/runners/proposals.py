"""The worker for approved proposals in a serving process: one thread, woken by a commit, or by a look each second."""

from __future__ import annotations

import asyncio
import logging
import os
import threading

from django.db import connections

from agent.conf import agent_settings
from agent.flows.execution import work

logger = logging.getLogger("agent.proposals")


class ProposalWorker:
    """Executes what waits, as many at a time as `PROPOSAL_CONCURRENCY` says."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._woken = threading.Event()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="agent-proposals", daemon=True)
        self._woken.set()  # what was approved before this process was there
        self._thread.start()

    def wake(self) -> None:
        """Something may wait."""
        self._woken.set()

    def stop(self, seconds: float) -> bool:
        """Take nothing up any more, and wait for the work in hand; False when that took longer."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._stopped = True
        self._woken.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    _stopped = False

    def _serve(self) -> None:
        try:
            while not self._stopped:
                self._woken.wait()
                self._woken.clear()
                if not self._stopped:
                    self._work()
        finally:
            self._loop.close()
            connections.close_all()

    def _work(self) -> None:
        try:
            self._loop.run_until_complete(work(stopping=self._stopping))
        except Exception:
            logger.exception("proposals could not be worked on; it is tried again")


_worker: ProposalWorker | None = None
_lock = threading.Lock()


def _after_fork() -> None:
    """A forked process has the object and none of its threads: it makes its own."""
    global _worker, _lock
    _worker, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def start() -> None:
    """Have a worker in this process."""
    global _worker
    with _lock:
        if _worker is None:
            _worker = ProposalWorker()


def wake() -> None:
    """Something may wait; the first call makes the worker, unless other processes are to do this work."""
    if _worker is None and agent_settings().embedded_worker:
        start()
    if _worker is not None:
        _worker.wake()


def stop() -> bool:
    """End the worker of this process; False when what it had in hand took longer than its lease."""
    global _worker
    with _lock:
        ending, _worker = _worker, None
    return ending is None or ending.stop(agent_settings().proposal_lease_seconds)
