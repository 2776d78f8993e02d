"""Which agents, personas, models and tools an actor has, and which of them a turn takes (spec 03 §1, 09 §5)."""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from agent.actors import Holder
from agent.conf import CatalogueModel, agent_settings
from agent.domain.actor import Actor
from agent.errors import Invalid, NotAllowed
from agent.flows.gates import listed, open_to, open_tools
from agent.registry import AgentDefinition, OfferContext, PersonaDefinition, ToolDefinition, provider_named, registry
from agent.registry import default_provider_name as default_provider

log = logging.getLogger("agent")

EVERY_AGENT = "*"


def agents_for(actor: Actor) -> list[dict[str, Any]]:
    """The agents that the actor may use, in their wire form."""
    return [
        {
            "name": agent.name,
            "label": agent.label,
            "description": agent.description,
            "personas": [{"id": each.id, "label": each.label} for each in _personas(agent, actor)],
            "allowAsk": agent.allow_ask,
        }
        for agent in _agents(actor)
    ]


def tools_for(actor: Actor, agent_name: str | None) -> list[dict[str, Any]]:
    """The tools that the agent's model would be offered for this actor; of every agent for `*`."""
    agents = _agents(actor) if agent_name == EVERY_AGENT else [_named(agent_name, actor)]
    found: dict[str, dict[str, Any]] = {}
    for agent in agents:
        ctx = OfferContext(actor=actor, agent_name=agent.name)
        for each in open_tools(listed(agent, ctx), ctx):
            found.setdefault(
                each.tool.name,
                {
                    "name": each.tool.name,
                    "kind": each.tool.kind,
                    "description": each.description,
                    "schema": each.tool.schema,
                    **_approval(each.tool, agent),
                },
            )
    return list(found.values())


def _approval(tool: ToolDefinition, agent: AgentDefinition) -> dict[str, Any]:
    """Whom an action asks as it is declared; the site's policy may say otherwise of a call."""
    if tool.kind != "action" or not tool.requires_approval:
        return {}
    mode = tool.approval_mode or agent.approval_mode or agent_settings().action_approval_mode
    return {"approval": {"mode": mode, "approver": tool.approver, "fourEyes": tool.four_eyes}}


def models_for(actor: Actor, agent_name: str | None) -> list[dict[str, Any]]:
    """The catalogue as the picker shows it; under a locked agent its own model alone is available."""
    agent, holder = _named(agent_name, actor), Holder(actor)
    used = agent.model or _default_model()
    return [
        {
            "id": entry.id,
            "label": entry.label,
            "available": _available(entry) and (not agent.lock_model or entry.id == agent.model),
            "locked": agent.lock_model and entry.id == agent.model,
            "default": entry.id == used,
        }
        for entry in agent_settings().models
        if open_to(entry.roles, entry.permission, actor, holder) and _serves(entry, agent.name)
    ]


def check_agent(name: str | None, actor: Actor) -> None:
    """Refuse a name that no agent has (400), and an agent that is not open to the actor (403)."""
    if name is None:
        return
    agent = registry.agent(name)
    if agent is None:
        raise Invalid("There is no such agent.", code="agent_not_found", fields={"agent": ["There is no such agent."]})
    if not open_to(agent.roles, agent.permission, actor, Holder(actor)):
        raise NotAllowed


def check_persona(name: str | None, agent_name: str | None, actor: Actor) -> None:
    """Refuse a persona that the agent does not have (400), and one whose roles the actor lacks (403)."""
    if name is None:
        return
    found = registry.persona(name)
    if found is None or (agent_name is not None and found not in registry.personas_of(registry.definition(agent_name))):
        raise _no_persona()
    if not open_to(found.roles, None, actor, Holder(actor)):
        raise NotAllowed


def check_model(model: str | None, agent_name: str | None, actor: Actor) -> None:
    """Refuse a model that is not offered to the actor, or not with this agent."""
    if model is None:
        return
    entry = _entry(model)
    offered = (
        entry is not None
        and _available(entry)
        and open_to(entry.roles, entry.permission, actor, Holder(actor))
        and (agent_name is None or _serves(entry, agent_name))
    )
    if not offered:
        raise _not_offered()


def resolve_agent(send_agent: str | None, thread_default: str | None) -> str | None:
    """The send's, else the thread's, else the project's, else the single declared one; None = the unnamed default."""
    if send_agent is not None:
        return send_agent
    if thread_default is not None:
        if registry.agent(thread_default) is not None:
            return thread_default
        log.warning("A conversation's agent %r is not declared any more; the default one answers.", thread_default)
    declared = registry.agents()
    return agent_settings().default_agent or (declared[0].name if len(declared) == 1 else None)


def resolve_persona(agent_name: str | None, send_persona: str | None, thread_pin: str | None) -> str | None:
    """The id of the send's, else the thread's, else the agent's default; a pin that is not there is passed over.

    A send's persona that the resolved agent does not have is refused.
    """
    agent = registry.definition(agent_name)
    if send_persona is not None:
        found = registry.persona(send_persona)
        if found is None or found not in registry.personas_of(agent):
            raise _no_persona()
        return found.id
    if thread_pin is not None:
        found = registry.persona(thread_pin)
        if found is not None and found in registry.personas_of(agent):
            return found.id
        log.warning("A conversation's persona %r is not declared any more; the run goes on without.", thread_pin)
    default = registry.default_persona_of(agent)
    return None if default is None else default.id


def resolve_model(agent_name: str | None, send_model: str | None, thread_pin: str | None) -> str | None:
    """The agent's locked one, else the send's, else the thread's, else the agent's own; None = the provider's default.

    A send's model that does not serve the agent is refused; a thread's that is not offered any more is passed over.
    """
    agent = registry.definition(agent_name)
    if agent.lock_model and agent.model:
        return agent.model
    if send_model is not None:
        entry = _entry(send_model)
        if entry is None or not _serves(entry, agent.name):
            raise _not_offered()
        return send_model
    if thread_pin is not None:
        entry = _entry(thread_pin)
        if entry is not None and _available(entry) and _serves(entry, agent.name):
            return thread_pin
        log.warning("A conversation's model %r is not offered any more; the agent's own answers.", thread_pin)
    return agent.model


def _agents(actor: Actor) -> list[AgentDefinition]:
    holder = Holder(actor)
    return [agent for agent in registry.agents() if open_to(agent.roles, agent.permission, actor, holder)]


def _named(agent_name: str | None, actor: Actor) -> AgentDefinition:
    """The agent that a catalogue is asked about, open to the actor; none named is the one that a new thread has."""
    name = resolve_agent(agent_name, None)
    check_agent(name, actor)
    return registry.definition(name)


def _personas(agent: AgentDefinition, actor: Actor) -> list[PersonaDefinition]:
    holder = Holder(actor)
    return [each for each in registry.personas_of(agent) if open_to(each.roles, None, actor, holder)]


def _entry(model: str) -> CatalogueModel | None:
    return next((each for each in agent_settings().models if each.id == model), None)


def _serves(entry: CatalogueModel, agent_name: str | None) -> bool:
    return entry.agents is None or agent_name in entry.agents


def _available(entry: CatalogueModel) -> bool:
    return entry.available and (entry.provider is None or entry.provider in agent_settings().providers)


def _default_model() -> str | None:
    """What a turn uses that names no model: the catalogue's default, else the provider's."""
    settings = agent_settings()
    marked = next((each.id for each in settings.models if each.default), None)
    if marked is not None or not settings.providers:
        return marked
    try:
        provider = provider_named(default_provider(settings))
    except (ImproperlyConfigured, ImportError):
        return None  # the checks say so; a picker is no place to fail
    own: str | None = getattr(provider, "default_model", None)
    return own


def _no_persona() -> Invalid:
    text = "There is no such persona."
    return Invalid(text, code="persona_not_found", fields={"persona": [text]})


def _not_offered() -> Invalid:
    text = "This model is not offered."
    return Invalid(text, code="model_not_offered", fields={"model": [text]})
