"""A model that says how far it is, and goes on when it may: both by files in the folder that the message names."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent.domain.actor import Actor
from agent.domain.model_calls import ModelRequest
from agent.providers.scripted import Answer, ScriptedProvider, ScriptedReply, call
from agent.registry import ToolContext, agent, tool


async def answer(request: ModelRequest) -> Answer:
    """`look <folder>` asks a tool first, `tool <folder>` one that waits for the file `go-tool`.

    Each model call of these, and that of `hold <folder>`, waits for the file `go-<step>`; else an answer at once.
    `ask <folder>` has another agent hold. `pay <folder>` proposes an action.
    """
    said = next(message.content for message in reversed(request.messages) if message.role == "user")
    word, _, folder = said.partition(" ")
    if word == "ask":
        asked = ScriptedReply("Asking.", calls=[call("ask_helper", task=f"hold {folder}")])
        return "Seven is here." if request.messages[-1].tool_results else asked
    if word == "pay":
        return ScriptedReply(calls=[call("pay", folder=folder)])
    if word not in {"look", "hold", "tool"}:
        return "Hello."
    step = int(bool(request.messages[-1].tool_results))
    (Path(folder) / f"asked-{step}").touch()
    await _there(Path(folder) / f"go-{step}")
    if word == "tool" and not step:
        return ScriptedReply(calls=[call("linger", folder=folder)])
    if word == "look" and not step:
        return ScriptedReply("Looking.", calls=[call("look", number=7)])
    return "Seven is here." if step else "Here."


async def _there(file: Path) -> None:
    while not file.exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
        await asyncio.sleep(0.01)


provider = ScriptedProvider(answer)


class StillThere:
    """Everybody who asked for something is still there."""

    def resolve(self, ref: str, tenant_ref: str | None) -> Actor:
        return Actor(ref, tenant_ref=tenant_ref)


def declare() -> None:
    """The agent and its tool."""

    @tool
    def look(number: int) -> int:
        """Look a number up."""
        return number

    @tool
    async def linger(folder: str) -> str:
        """Take a while."""
        (Path(folder) / "asked-tool").touch()
        await _there(Path(folder) / "go-tool")
        return "done"

    @tool(kind="action", approval_mode="independent")
    async def pay(ctx: ToolContext, folder: str) -> str:
        """Pay, once a person has agreed."""
        with (Path(folder) / "paid").open("a") as book:
            book.write(f"{ctx.idempotency_key}\n")
        await _there(Path(folder) / "go-pay")
        return "paid"

    @agent(name="helper", prompt="You are asked.", tools=[])
    class Helper:
        """Asked by the desk."""

    @agent(name="desk", prompt="You help.", tools=[look, linger, pay], handoffs=["helper"])
    class Desk:
        """The desk."""
