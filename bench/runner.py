"""The inline runner, telling when a run has ended: settled, and its terminal frame stored."""

from __future__ import annotations

import time
from queue import SimpleQueue

from agent.runners.inline import InlineRunner

ended: SimpleQueue[tuple[str, float]] = SimpleQueue()  # run id and the instant, in the order of their ends


class TimedRunner(InlineRunner):
    """Drives runs as its parent does."""

    async def _drive(self, run_id: str) -> bool:
        released = await super()._drive(run_id)
        ended.put((run_id, time.perf_counter()))
        return released
