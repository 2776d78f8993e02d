"""A desk that asks a researcher, who looks things up, asks people and acts; each says what its own script holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent.domain.model_calls import ModelRequest
from agent.domain.runs import Run
from agent.providers.scripted import Answer, ScriptedReply, call
from agent.registry import Handoff, ToolContext, agent, tool
from agent.store import get_store
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]
ASK = ScriptedReply("One moment.", calls=[call("ask_researcher", "ask", task="Where is 7?")])
START = ScriptedReply(calls=[call("start_researcher", "start", task="Where is 7?")])


Says = Answer | list[Answer] | Callable[[ModelRequest], Answer]


def made(make: MakeSite, says: Mapping[str, Says], **settings: Any) -> Site:
    """The site; `says` holds by the name of an agent what it answers, a list one entry a model call."""
    spoken = {name: list(answers) if isinstance(answers, list) else answers for name, answers in says.items()}

    def script(request: ModelRequest) -> Answer:
        answers = spoken[request.system.split()[-1].strip(".")]
        if isinstance(answers, list):
            return answers.pop(0)
        return answers(request) if callable(answers) else answers

    site = make(script, **{"DEFAULT_AGENT": "desk", **settings})
    declare()
    return site


def declare() -> None:
    """The agents `desk`, `researcher` and `clerk`."""

    @tool
    def look(number: int) -> str:
        """Look a number up."""
        return f"{number} is here"

    @tool(kind="action")
    def move(ctx: ToolContext, number: int) -> int:
        """Move a number."""
        return number

    asked = [Handoff("researcher"), Handoff("researcher", detached=True)]
    agent(name="desk", prompt="You are desk.", tools=[], handoffs=asked)(type("Desk", (), {}))
    agent(
        name="researcher",
        prompt="You are researcher.",
        tools=[look, move],
        handoffs=["clerk", "desk"],
        allow_ask=True,
        follow_ups=True,  # made for people: an agent that asks is given none
    )(type("Researcher", (), {}))
    agent(name="clerk", prompt="You are clerk.", tools=[], handoffs=["researcher"])(type("Clerk", (), {}))


def child_of(run: Run) -> Run:
    """The only run that this one asked for, over or not."""
    (started,) = (
        step.payload["runId"]
        for step in get_store().steps(run.id)
        if "runId" in str(step.payload) and step.name.startswith("persist:toolcall:")
    )
    child = get_store().get_run(started)
    assert child is not None
    return child
