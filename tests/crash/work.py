"""What a child does: take a run up as a server's process does, or find the runs that nobody works on."""

from __future__ import annotations

from typing import Any

from agent.flows import dispatch
from agent.flows.recovery import recover
from tests.crash import mortal

SECONDS = 30


def do(order: dict[str, Any]) -> None:
    """Drive the run of the order, or recover, as the plan in it says."""
    mortal.follow(order)
    if "run" in order:
        dispatch.run(order["run"])
    else:
        recover(queued_for=0)
    assert dispatch.wait(SECONDS), "a run was driven for too long"
    dispatch.stop()
