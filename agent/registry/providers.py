"""Model providers by name: made at first use, once, with the options that the settings give."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from django.core.exceptions import ImproperlyConfigured

from agent.conf import AgentSettings, CatalogueModel, agent_settings, resolved
from agent.registry.book import registry
from agent.registry.definitions import AgentDefinition
from agent.spi import ModelProvider

_making = threading.RLock()


class ProviderChoice(NamedTuple):
    """Who answers, and the provider's own name of the model (None = the provider's own default)."""

    name: str
    provider: ModelProvider
    model: str | None


def provider_for(model_id: str | None) -> ProviderChoice:
    """The provider of a catalogue's model; a model outside of it, or none, is the default provider's."""
    settings = agent_settings()
    entry, name = _entry(settings.models, model_id), _name_for(settings, model_id)
    provider = provider_named(name)
    model = entry.id if entry else model_id
    return ProviderChoice(name, provider, model or getattr(provider, "default_model", None))


def _name_for(settings: AgentSettings, model_id: str | None) -> str:
    entry = _entry(settings.models, model_id)
    return (entry.provider if entry else None) or default_provider_name(settings)


def _entry(models: tuple[CatalogueModel, ...], model_id: str | None) -> CatalogueModel | None:
    return next((each for each in models if (each.default if model_id is None else each.id == model_id)), None)


def default_provider_name(settings: AgentSettings) -> str:
    """The named one, else the only one."""
    if settings.default_provider is not None:
        return settings.default_provider
    if len(settings.providers) == 1:
        return next(iter(settings.providers))
    if settings.providers:
        raise ImproperlyConfigured('AGENT["DEFAULT_PROVIDER"]: name one of PROVIDERS.')
    raise ImproperlyConfigured('AGENT["PROVIDERS"]: no model provider is configured.')


def toolless_problems(settings: AgentSettings) -> Iterator[str]:
    """Agents with tools, or that ask, and the models that would answer them from a provider that knows no tools."""
    for agent in registry.agents():
        if not (registry.tools_of(agent) or agent.handoffs or agent.allow_ask or agent.intake):
            continue
        for name in sorted(_providers_of(agent, settings)):
            if not _supports_tools(name):
                yield f"Agent {agent.name!r} ({agent.origin}) has tools, and the provider {name!r} supports none."


def _providers_of(agent: AgentDefinition, settings: AgentSettings) -> set[str]:
    """By whom the agent may be answered: its own model's provider, and those of the models that people may choose."""
    chosen = [each.id for each in settings.models if each.agents is None or agent.name in each.agents]
    models = [agent.model] if agent.lock_model else [agent.model, *chosen]
    try:
        return {_name_for(settings, model) for model in models}
    except ImproperlyConfigured:  # E010 speaks of it
        return set()


def _supports_tools(name: str) -> bool:
    try:
        return bool(getattr(provider_named(name), "supports_tools", True))
    except Exception:  # E010 or E032 speaks of it
        return True


def provider_named(name: str) -> ModelProvider:
    """The provider itself, the same one every time until the settings change."""
    with _making:
        return _made(agent_settings(), name)


@lru_cache(maxsize=32)
def _made(settings: AgentSettings, name: str) -> ModelProvider:
    if name not in settings.providers:
        raise ImproperlyConfigured(f'AGENT["PROVIDERS"]: there is no provider {name!r}.')
    entry: Any = settings.providers[name]
    options: dict[str, Any] = {}
    if isinstance(entry, Mapping):
        options = {key: value for key, value in entry.items() if key != "class"}
        entry = entry["class"]
    found = resolved(f"PROVIDERS.{name}", entry)
    if isinstance(found, type):
        return cast(ModelProvider, found(**options))
    if options:
        raise ImproperlyConfigured(f'AGENT["PROVIDERS"][{name!r}]: only a class takes options.')
    return cast(ModelProvider, found)
