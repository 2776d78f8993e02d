"""What the served site declares."""

from __future__ import annotations

from typing import Any

from agent import ToolContext, agent, tool


@tool
def look_up_order(ctx: ToolContext, number: int) -> dict[str, Any]:
    """One order by its number."""
    return {"number": number, "status": "sent", "for": ctx.actor.ref}


@agent(name="back-office", prompt="You count.", tools=[], roles=("finance",))
class BackOffice:
    """For those of the role alone."""


@agent(name="desk", prompt="You help.", tools=[look_up_order])
class Desk:
    """The desk."""
