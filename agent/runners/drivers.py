"""Runs driven in this process: one loop thread, a task a run. Both runners drive so."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial

from agent.flows.driver import Driver
from agent.flows.runner import drive

LAST_SECONDS = 2  # for releasing runs whose effect was broken off

logger = logging.getLogger("agent.runner")


class Drivers:
    """A loop on a thread of its own, so that no request and no slow view of the host holds a run up."""

    def __init__(self) -> None:
        self._drivers: dict[str, Driver] = {}
        self._tasks: set[Future[bool]] = set()
        self._leaving = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="agent-runs", daemon=True)
        self._thread.start()

    def work_on(self, run_id: str) -> Future[bool]:
        """Drive a run until it is settled, parked or another's; True when it was left for another process."""
        if self._leaving:
            left: Future[bool] = Future()
            left.set_result(True)
            return left
        task = asyncio.run_coroutine_threadsafe(self._drive(run_id), self._loop)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def signal(self, run_id: str) -> None:
        """A decision or a cancel is there for the run, if it is driven here."""
        self._loop.call_soon_threadsafe(self._tell, run_id, Driver.cancel)

    def drop(self, run_id: str) -> None:
        """Stop driving a run as if the process had died; its lease lapses."""
        self._loop.call_soon_threadsafe(self._tell, run_id, Driver.lose)

    def drives(self, run_id: str) -> bool:
        return run_id in self._drivers

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is driven, what a run has begun or woken included; False when that took longer."""
        deadline = time.monotonic() + seconds
        while tasks := list(self._tasks):
            if wait(tasks, timeout=max(0.0, deadline - time.monotonic())).not_done:
                return False
        return True

    def hand_over(self, *, grace_seconds: float | None = None) -> None:
        """Leave every run at its next border; after the grace with what it is in broken off."""
        self._leaving = True
        self._tell_all(now=False)
        if grace_seconds is not None:
            self._loop.call_soon_threadsafe(self._loop.call_later, grace_seconds, partial(self._tell_all, now=True))

    def stop(self, grace_seconds: float) -> None:
        """Give the runs that long to reach a border, then release them, and end the loop; once."""
        if self._loop.is_closed():
            return
        self.hand_over(grace_seconds=grace_seconds)
        self.wait(grace_seconds + LAST_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=1)

    def watch(self, descriptor: int, call: Callable[[], object]) -> None:
        """Call once, on the loop, when there is something to read; it is left there for others."""

        def heard() -> None:
            self._loop.remove_reader(descriptor)
            call()

        self._loop.call_soon_threadsafe(self._loop.add_reader, descriptor, heard)

    def _tell_all(self, *, now: bool) -> None:
        for driver in list(self._drivers.values()):
            self._loop.call_soon_threadsafe(partial(driver.hand_over, now=now))

    def _tell(self, run_id: str, call: Callable[[Driver], None]) -> None:
        if (driver := self._drivers.get(run_id)) is not None:
            call(driver)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _drive(self, run_id: str) -> bool:
        if (known := self._drivers.get(run_id)) is not None:
            known.asked_again = True  # it may be parking at this moment, and a decision must not be missed
            return False
        driver = await self._driven(run_id)
        while driver.asked_again and not driver.released:
            driver = await self._driven(run_id)
        return driver.released

    async def _driven(self, run_id: str) -> Driver:
        driver = self._drivers[run_id] = Driver(run_id)
        if self._leaving:  # a hand-over that did not see this one yet
            driver.hand_over()
        try:
            await drive(driver)
        except Exception:
            logger.exception("run %s could not be driven", run_id)
        finally:
            del self._drivers[run_id]
        return driver
