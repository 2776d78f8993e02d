"""Runs driven in the process that serves."""

from __future__ import annotations

from agent.runners import proposals
from agent.runners.drivers import Drivers


class InlineRunner(Drivers):
    """Takes a run up at once, whatever else this process does."""

    def start(self, run_id: str) -> None:
        self.work_on(run_id)

    def execute(self, proposal_id: str) -> None:
        """Wake the worker of this process; where it has none, another one's finds the row."""
        proposals.wake()

    def is_alive(self, run_id: str) -> bool | None:
        return True if self.drives(run_id) else None
