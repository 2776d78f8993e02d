"""Agents that an agent may ask: each is a tool of kind `agent`, made of the two declarations (spec 11 §6)."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Final

from pydantic import BaseModel, Field

from agent.registry.book import registry
from agent.registry.context import ToolContext
from agent.registry.definitions import AgentDefinition, Handoff, ToolDefinition
from agent.registry.tools import Tool, define

AGENT: Final = "agent"  # the kind of such a tool
AWAITED: Final = 'Give the agent "{label}" a task, and wait for its answer. It sees only the task. {about}'
DETACHED: Final = (
    'Have the agent "{label}" begin a task, without waiting: its answer comes later, as a message of its own. '
    "It sees only the task. {about}"
)


class Task(BaseModel):
    """What another agent is asked."""

    task: Annotated[str, Field(min_length=1, description="What is to be done, with everything needed to do it.")]


class _HandOver(Tool):
    """Ask another agent."""

    Input = Task

    def execute(self, input: Task, ctx: ToolContext) -> None:  # noqa: A002
        raise AssertionError("another run answers this one")


def handoffs_of(agent: AgentDefinition) -> tuple[ToolDefinition, ...]:
    """The tools by which the agent asks others, in its own order; agents that are gone are left out."""
    pairs = ((handoff, registry.agent(handoff.agent)) for handoff in agent.handoffs)
    return tuple(_tool(handoff, asked) for handoff, asked in pairs if asked is not None)


@lru_cache(maxsize=256)
def _tool(handoff: Handoff, asked: AgentDefinition) -> ToolDefinition:
    """Open to whoever may use the agent that is asked."""
    described = handoff.description or (DETACHED if handoff.detached else AWAITED).format(
        label=asked.label, about=asked.description
    )
    options = {"name": handoff.tool_name, "kind": AGENT, "roles": asked.roles, "permission": asked.permission}
    return define(_HandOver, options, handoff=handoff, description=described.strip())
