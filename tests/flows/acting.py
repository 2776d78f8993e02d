"""An agent with actions that wait for people, and what a test looks at when they are decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent.domain.actor import Actor
from agent.domain.model_calls import ModelRequest, ReplyCall
from agent.domain.snapshots import ToolCall
from agent.providers.scripted import ScriptedReply, call
from agent.registry import Confirm, Preflight, Tool, ToolContext, agent, ready, tool
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]
LEAD = Actor("lead", ("lead",))
STRANGER = Actor("stranger")


@dataclass
class Acting:
    """The site with what its actions did; `preflight` is asked in both phases."""

    make: MakeSite
    done: list[tuple[str, int, str]] = field(default_factory=list)  # tool, order, idempotency key
    asked: list[str] = field(default_factory=list)  # phases of preflights
    preflight: Callable[[int, str], Preflight] = field(default=lambda number, phase: ready())

    def site(self, *calls: ReplyCall, then: str = "Done.", **settings: Any) -> Site:
        """A model that asks for these calls in one step and says `then` to their results."""

        def script(request: ModelRequest) -> ScriptedReply:
            if request.messages[-1].tool_results:
                return ScriptedReply(then)
            return ScriptedReply("One moment.", calls=list(calls))

        return self.make(script, **settings)

    def declare(self, **options: Any) -> None:
        """The actions `cancel` and `refund` with these options, and a read."""
        acting = self
        confirm = Confirm("Cancel order {number}", "Cancel", "For good.")

        @tool(name="cancel", kind="action", confirm=confirm, **options)
        def cancel(ctx: ToolContext, number: int) -> dict[str, int]:
            """Cancel an order."""
            acting.done.append(("cancel", number, ctx.idempotency_key))
            if number == 13:
                raise ValueError(number)
            return {"cancelled": number}

        @tool(**options)
        class Refund(Tool):
            """Pay an order back."""

            kind = "action"

            def preflight(self, input: Any, ctx: ToolContext, phase: str) -> Preflight:  # noqa: A002
                acting.asked.append(phase)
                return acting.preflight(input.number, phase)

            def execute(self, ctx: ToolContext, number: int) -> dict[str, int]:
                acting.done.append(("refund", number, ctx.idempotency_key))
                return {"refunded": number}

        @tool
        def look(number: int) -> int:
            """Look a number up."""
            acting.done.append(("look", number, ""))
            return number

        agent(name="desk", prompt="p", tools=["cancel", "refund", "look"])(type("Desk", (), {}))


def cancel_call(number: int = 1043, call_id: str = "c") -> ReplyCall:
    return call("cancel", call_id, number=number)


def refund_call(number: int = 1042, call_id: str = "r") -> ReplyCall:
    return call("refund", call_id, number=number)


def calls_of(desk: Site, thread_id: str) -> list[ToolCall]:
    """The rows of the conversation's calls, in order; a call whose turn has not come has none yet."""
    calls = (one for message in desk.messages(thread_id) for one in message.tool_calls or ())
    rows = (desk.store.get_tool_call(one["id"]) for one in calls)
    return [row for row in rows if row is not None]


def kinds(desk: Site, run_id: str, *wanted: str) -> list[str]:
    """The kinds of the run's frames in order; of these alone where they are named."""
    told = [frame.get("kind", "end") for frame in desk.frames(run_id)]
    return [kind for kind in told if not wanted or kind in wanted]


def frame_of(desk: Site, run_id: str, kind: str) -> dict[str, Any]:
    (frame,) = [frame for frame in desk.frames(run_id) if frame.get("kind") == kind]
    return frame
