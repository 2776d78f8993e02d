"""The seven gates of a tool (spec 10 §5), asked when it is offered and again when it is called."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from agent.actors import Holder
from agent.conf import agent_settings
from agent.domain.actor import Actor
from agent.domain.redaction import redact
from agent.registry import AgentDefinition, Described, OfferContext, ToolDefinition, ask, handoffs_of, registry

log = logging.getLogger("agent.tools")


@dataclass(frozen=True, slots=True)
class Open:
    """A tool that this actor may use now, with the description that the model is shown."""

    tool: ToolDefinition
    description: str


def listed(definition: AgentDefinition, ctx: OfferContext) -> list[ToolDefinition]:
    """Gates 1 and 2: its own tools and whom it may ask, less what the persona leaves out; and what is built in."""
    allowed = ctx.allowed_tools
    tools = (*registry.tools_of(definition), *handoffs_of(definition))
    own = [tool for tool in tools if allowed is None or tool.name in allowed]
    return [*own, ask] if definition.allow_ask else own


def asks_host(tools: Iterable[ToolDefinition]) -> bool:
    """Whether a gate calls the host's code or reads a user, which must not happen on the event loop."""
    return any(tool.permission or tool.can_use or tool.is_enabled or tool.describe for tool in tools)


def open_tools(tools: Iterable[ToolDefinition], ctx: OfferContext) -> tuple[Open, ...]:
    """Those that gates 3 to 7 let pass. Sync: it may call the host and read the database."""
    holder = Holder(ctx.actor)
    passed = (_pass(tool, ctx, holder) for tool in tools)
    return tuple(each for each in passed if each is not None)


def _pass(tool: ToolDefinition, ctx: OfferContext, holder: Holder) -> Open | None:
    if tool is ask:
        return Open(tool, tool.description)
    if tool.handoff is not None:
        return Open(tool, tool.description) if open_to(tool.roles or (), tool.permission, ctx.actor, holder) else None
    if not (tool.enabled and has_role(ctx.actor, tool.roles) and holder.has(tool.permission)):
        return None
    if not (_agrees(tool, tool.is_enabled, ctx) and _agrees(tool, tool.can_use, ctx.actor)):
        return None
    described = _described(tool, ctx)
    return Open(tool, described.description or tool.description) if described.available else None


def open_to(roles: tuple[str, ...], permission: str | None, actor: Actor, holder: Holder) -> bool:
    """Whether an agent or a persona is the actor's to use; one that names no role is everybody's."""
    return (not roles or not set(roles).isdisjoint(actor.roles)) and holder.has(permission)


def has_role(actor: Actor, roles: tuple[str, ...] | None) -> bool:
    """Any of the roles; a tool that declares none takes the project's; what an empty list means, the project says."""
    settings = agent_settings()
    asked = settings.tool_default_roles if roles is None else roles
    if asked:
        return not set(asked).isdisjoint(actor.roles)
    return roles is None or settings.tool_empty_roles == "open"


def _agrees(tool: ToolDefinition, gate: Callable[[Any], object] | None, asked: object) -> bool:
    """A gate that raises is closed, and so is one that answers something to be awaited."""
    if gate is None:
        return True
    answer = _asked(tool, gate, asked, failed=False)
    return bool(answer) and not inspect.isawaitable(answer)


def _described(tool: ToolDefinition, ctx: OfferContext) -> Described:
    if tool.describe is None:
        return Described()
    answer = _asked(tool, tool.describe, ctx, failed=Described(available=False))
    if isinstance(answer, Described):
        return answer
    return Described(description=answer) if answer is None or isinstance(answer, str) else Described(available=False)


def _asked(tool: ToolDefinition, gate: Callable[[Any], object], asked: object, *, failed: object) -> object:
    try:
        return gate(asked)
    except Exception as error:  # whatever a host's gate raises, it says no
        if getattr(error, "agent_signal", False):
            raise
        log.warning("A gate of tool %s raised, so it is closed: %s", tool.name, redact(repr(error)))
        return failed
