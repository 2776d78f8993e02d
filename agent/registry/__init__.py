"""Agents, tools and personas by name, as hosts declare them; providers by dotted path."""

from agent.conf import import_path
from agent.registry.agents import agent
from agent.registry.asking import ask
from agent.registry.book import Registry, isolated_registry, registry
from agent.registry.context import (
    Confirm,
    Described,
    OfferContext,
    Preflight,
    Presentation,
    PromptContext,
    StoreReads,
    ToolContext,
    completed,
    denied,
    ready,
)
from agent.registry.definitions import UNNAMED, AgentDefinition, Handoff, PersonaDefinition, ToolDefinition
from agent.registry.handoffs import handoffs_of
from agent.registry.names import human_name
from agent.registry.output import FollowUps, NotOfForm, parsed
from agent.registry.personas import persona
from agent.registry.providers import (
    ProviderChoice,
    default_provider_name,
    provider_for,
    provider_named,
    toolless_problems,
)
from agent.registry.schema import CONFIRM_FIELDS, InvalidInput, json_schema
from agent.registry.tools import Tool, tool
from agent.registry.windows import resolve_history

__all__ = [
    "CONFIRM_FIELDS",
    "UNNAMED",
    "AgentDefinition",
    "Confirm",
    "Described",
    "FollowUps",
    "Handoff",
    "InvalidInput",
    "NotOfForm",
    "OfferContext",
    "PersonaDefinition",
    "Preflight",
    "Presentation",
    "PromptContext",
    "ProviderChoice",
    "Registry",
    "StoreReads",
    "Tool",
    "ToolContext",
    "ToolDefinition",
    "agent",
    "ask",
    "completed",
    "default_provider_name",
    "denied",
    "handoffs_of",
    "human_name",
    "import_path",
    "isolated_registry",
    "json_schema",
    "parsed",
    "persona",
    "provider_for",
    "provider_named",
    "ready",
    "registry",
    "resolve_history",
    "tool",
    "toolless_problems",
]
