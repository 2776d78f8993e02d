"""The check of an action before anybody is asked, and again right before it runs (spec 07 §3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, cast

from pydantic import BaseModel

from agent.conf import agent_settings
from agent.domain.approvals import ApprovalThread, Requirement
from agent.domain.model_calls import Frame
from agent.flows.reads import ReadOnly
from agent.flows.tools import ToolResult, execute, in_time, succeeded
from agent.registry import Confirm, Preflight, ToolContext, ToolDefinition, human_name, ready
from agent.spi import ApprovalPolicy

Phase = Literal["prepare", "execute"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a person would be shown of a call, and whether one is asked."""

    requirement: Requirement
    confirmation: dict[str, str]
    replacement_key: str | None = None  # what at most one pending proposal may stand for


async def prepare(
    tool: ToolDefinition, arguments: BaseModel, ctx: ToolContext, *, thread: ApprovalThread
) -> Card | ToolResult:
    """Whom the call has to wait for; a result where it is settled without anybody."""
    found = await _preflight(tool, arguments, ctx, "prepare")
    if isinstance(found, ToolResult):
        return found
    policy = cast("ApprovalPolicy", agent_settings().approval_policy)
    ask = partial(policy.requirement_for, tool, arguments, ctx.actor, thread)
    return await in_time(tool, ctx, ask, partial(_card, tool, arguments, found), runs_async=False)


async def perform(tool: ToolDefinition, arguments: BaseModel, ctx: ToolContext) -> ToolResult:
    """Run the action if its preflight still lets it."""
    found = await _preflight(tool, arguments, ctx, "execute")
    return found if isinstance(found, ToolResult) else await execute(tool, arguments, ctx)


async def _preflight(
    tool: ToolDefinition, arguments: BaseModel, ctx: ToolContext, phase: Phase
) -> Preflight | ToolResult:
    """`ready`, or the result that it leaves."""
    if tool.preflight is None:
        return ready()
    asked = replace(ctx, emit=_silent, store=ReadOnly(ctx.store))
    ask = partial(tool.preflight, arguments, asked, phase)
    return await in_time(tool, ctx, ask, partial(_taken, tool, arguments, asked), runs_async=tool.preflights_async)


def _silent(frame: Frame) -> None:
    """What is looked at is not shown."""


def _taken(tool: ToolDefinition, arguments: BaseModel, ctx: ToolContext, answer: object) -> Preflight | ToolResult:
    if not isinstance(answer, Preflight):
        raise TypeError(f"a preflight answers ready(), denied(reason) or completed(output), not {answer!r:.80}")
    if answer.answer == "denied":
        return ToolResult(denied=answer.reason)
    if answer.answer == "completed":
        return succeeded(tool, arguments, answer.output, ctx)
    return answer


def _card(tool: ToolDefinition, arguments: BaseModel, found: Preflight, requirement: object) -> Card:
    if not isinstance(requirement, Requirement):
        raise TypeError(f"an approval policy answers a Requirement, not {requirement!r:.80}")
    key = None if tool.replacement_key is None else tool.replacement_key(arguments)
    if not isinstance(key, str | None):
        raise TypeError(f"a replacement key is text or None, not {key!r:.80}")
    if found.confirmation is not None:
        return Card(requirement=requirement, confirmation=found.confirmation.texts(), replacement_key=key)
    name = human_name(tool.name)
    confirm = tool.confirm or Confirm(title=name, verb=name)
    fields = arguments.model_dump(mode="json") if tool.confirm else {}
    return Card(requirement=requirement, confirmation=confirm.filled(fields), replacement_key=key)
