"""The worker for approved proposals in a serving process: one thread, woken by a commit, or by a look each second."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from contextlib import suppress

from django.db import connections

from agent.conf import agent_settings
from agent.flows.execution import execute_next

logger = logging.getLogger("agent.proposals")


class ProposalWorker:
    """Executes what waits in `PROPOSAL_CONCURRENCY` slots; a slow execution holds up its own slot alone."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._woken = [asyncio.Event() for _ in range(agent_settings().proposal_concurrency)]
        self._stopped = False
        self._thread = threading.Thread(target=self._serve, name="agent-proposals", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Something may wait."""
        with suppress(RuntimeError):  # the worker has ended
            self._loop.call_soon_threadsafe(self._wake_all)

    def stop(self, seconds: float) -> bool:
        """Take nothing up any more, and wait for the work in hand; False when that took longer."""
        self._stopped = True
        self.wake()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _wake_all(self) -> None:
        for woken in self._woken:
            woken.set()

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._work())
        finally:
            self._loop.close()
            connections.close_all()

    async def _work(self) -> None:
        await asyncio.gather(*(self._slot(woken) for woken in self._woken))

    async def _slot(self, woken: asyncio.Event) -> None:
        while not self._stopped:
            woken.clear()
            if not await self._did_something() and not self._stopped:
                await woken.wait()

    async def _did_something(self) -> bool:
        try:
            return await execute_next()
        except Exception:
            logger.exception("proposals could not be worked on; it is tried again")
            return False


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
