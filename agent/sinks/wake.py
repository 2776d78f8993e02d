"""Wake-ups inside a process: a hint that a stream has new rows. It may be merged or lost; polling is the net."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Bell:
    """One follower's bell; rung from any thread, waited for on the loop it was made on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def ring(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:  # the follower's loop has ended, and the follower with it
            return

    async def wait(self, seconds: float) -> bool:
        """True when it rang; False after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Wakes:
    """Who waits for which run."""

    def __init__(self) -> None:
        self._bells: dict[str, set[Bell]] = defaultdict(set)
        self._lock = threading.Lock()

    @contextmanager
    def listening(self, run_id: str) -> Iterator[Bell]:
        bell = Bell()
        with self._lock:
            self._bells[run_id].add(bell)
        try:
            yield bell
        finally:
            with self._lock:
                self._bells[run_id].discard(bell)
                if not self._bells[run_id]:
                    del self._bells[run_id]

    def publish(self, run_id: str) -> None:
        with self._lock:
            bells = tuple(self._bells.get(run_id, ()))
        for bell in bells:
            bell.ring()
