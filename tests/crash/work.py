"""What a child does: take a run up as a server's process does, or find the runs that nobody works on."""

from __future__ import annotations

import asyncio
from typing import Any

from agent.flows import dispatch, execution
from agent.flows.recovery import recover
from agent.testing.turns import drive_run, held_runner
from tests.crash import mortal

SECONDS = 30


def do(order: dict[str, Any]) -> None:
    """Drive the run of the order, alone or with those it asks for, or recover, as the plan in it says."""
    mortal.follow(order)
    if "proposal" in order:
        asyncio.run(execution.execute(order["proposal"]))
        return
    if "sweep" in order:
        asyncio.run(execution.sweep())
        return
    if "alone" in order:
        with held_runner():
            drive_run(order["alone"])
        return
    if "run" in order:
        dispatch.run(order["run"])
    else:
        recover(queued_for=0)
    assert dispatch.wait(SECONDS), "a run was driven for too long"
    dispatch.stop()
