"""The inline runner, telling when a run has ended: settled, and its terminal frame stored."""

from __future__ import annotations

import asyncio
import time
from queue import SimpleQueue

from agent.runners.inline import InlineRunner

ended: SimpleQueue[tuple[str, float]] = SimpleQueue()  # run id and the instant, in the order of their ends


class TimedRunner(InlineRunner):
    """Drives runs as its parent does."""

    @property
    def driven(self) -> int:
        """How many runs this process has in hand."""
        return len(self._drivers)

    def tasks_of_loop(self) -> int:
        return len(asyncio.all_tasks(self._loop))

    async def _drive(self, run_id: str) -> bool:
        released = await super()._drive(run_id)
        ended.put((run_id, time.perf_counter()))
        return released
