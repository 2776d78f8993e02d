"""The store: its promise (`base`), the one that keeps it on the site's database, and the one this process uses."""

from __future__ import annotations

from typing import cast

from django.core.signals import setting_changed

from agent.conf import agent_settings
from agent.store.base import AgentStore
from agent.store.orm import OrmStore

__all__ = ["AgentStore", "OrmStore", "get_store"]

_store: AgentStore | None = None


def get_store() -> AgentStore:
    """The store that `AGENT["STORE"]` names, one for the process."""
    global _store
    if _store is None:
        named = agent_settings().store
        _store = cast("AgentStore", named() if isinstance(named, type) else named)
    return _store


def _forget(*, setting: str, **_kwargs: object) -> None:
    global _store
    if setting == "AGENT":
        _store = None


setting_changed.connect(_forget)
