"""Model providers by name: made at first use, once, with the options that the settings give."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from django.core.exceptions import ImproperlyConfigured

from agent.conf import AgentSettings, CatalogueModel, agent_settings, resolved
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
    entry = _entry(settings.models, model_id)
    name = (entry.provider if entry else None) or default_provider_name(settings)
    provider = provider_named(name)
    model = entry.id if entry else model_id
    return ProviderChoice(name, provider, model or getattr(provider, "default_model", None))


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
