"""Runs driven in this process: one loop thread, a task a run."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future, wait
from functools import partial

from agent.flows.driver import Driver
from agent.flows.runner import drive

LAST_SECONDS = 2  # for releasing runs whose model call was broken off

logger = logging.getLogger("agent.runner")


class InlineRunner:
    """Drives runs on a loop thread of its own, so that no request and no slow view of the host holds them up."""

    def __init__(self) -> None:
        self._drivers: dict[str, Driver] = {}
        self._tasks: set[Future[None]] = set()
        self._stopping = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="agent-runs", daemon=True)
        self._thread.start()

    def start(self, run_id: str) -> None:
        if self._stopping:
            return  # the row is queued: whoever looks for lapsed runs finds it
        task = asyncio.run_coroutine_threadsafe(self._drive(run_id), self._loop)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def signal(self, run_id: str) -> None:
        self._loop.call_soon_threadsafe(self._signal, run_id)

    def is_alive(self, run_id: str) -> bool | None:
        return True if run_id in self._drivers else None

    def wait(self, seconds: float) -> bool:
        return not wait(list(self._tasks), timeout=seconds).not_done

    def stop(self, grace_seconds: float) -> None:
        self._stopping = True
        self._hand_over(now=False)
        _, late = wait(list(self._tasks), timeout=grace_seconds)
        if late:
            self._hand_over(now=True)
            wait(late, timeout=LAST_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=1)

    def _hand_over(self, *, now: bool) -> None:
        for driver in list(self._drivers.values()):
            self._loop.call_soon_threadsafe(partial(driver.hand_over, now=now))

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _signal(self, run_id: str) -> None:
        if (driver := self._drivers.get(run_id)) is not None:
            driver.cancel()

    async def _drive(self, run_id: str) -> None:
        if run_id in self._drivers:
            return
        driver = self._drivers[run_id] = Driver(run_id)
        try:
            await drive(driver)
        except Exception:
            logger.exception("run %s could not be driven", run_id)
        finally:
            del self._drivers[run_id]
