"""The store: its promise (`base`), the one that keeps it on the site's database, and the one this process uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from django.core.signals import setting_changed

from agent.conf import agent_settings
from agent.db import in_db, in_db_later
from agent.domain.snapshots import ThreadPage
from agent.store.base import CAPABILITIES, REQUIRED, AgentStore, UnitOfWork
from agent.store.conversations import (
    DefaultAgentReader,
    FeedbackStore,
    MessageStore,
    MessageUiStore,
    SummaryStore,
    ThreadPatchStore,
    ThreadStore,
    ThreadTurnQuery,
    ThreadTurnReader,
    ToolCallStore,
)
from agent.store.in_process import with_runs
from agent.store.orm import OrmStore
from agent.store.queue import QueueStore
from agent.store.work import FrameStore, IdempotencyStore, JournalStore, LedgerStore, RunStore

__all__ = [
    "CAPABILITIES",
    "REQUIRED",
    "AgentStore",
    "DefaultAgentReader",
    "FeedbackStore",
    "FrameStore",
    "IdempotencyStore",
    "JournalStore",
    "LedgerStore",
    "MessageStore",
    "MessageUiStore",
    "OrmStore",
    "QueueStore",
    "RunStore",
    "SummaryStore",
    "ThreadPage",
    "ThreadPatchStore",
    "ThreadStore",
    "ThreadTurnQuery",
    "ThreadTurnReader",
    "ToolCallStore",
    "UnitOfWork",
    "get_store",
    "in_store",
    "in_store_later",
]

P = ParamSpec("P")
T = TypeVar("T")

_store: AgentStore | None = None


def get_store() -> AgentStore:
    """The store that `AGENT["STORE"]` names, one for the process; beside one that records no runs, those of it."""
    global _store
    if _store is None:
        named = agent_settings().store
        _store = with_runs(cast("AgentStore", named() if isinstance(named, type) else named))
    return _store


async def in_store(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a unit of work from async code: on the agent's threads where the store waits, else at once."""
    if getattr(get_store(), "waits", True):
        return await in_db(call, *args, **kwargs)
    return call(*args, **kwargs)


async def in_store_later(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `in_store`, for what nobody waits for: on busy threads the others go first."""
    if getattr(get_store(), "waits", True):
        return await in_db_later(call, *args, **kwargs)
    return call(*args, **kwargs)


def _forget(*, setting: str, **_kwargs: object) -> None:
    global _store
    if setting == "AGENT":
        _store = None


setting_changed.connect(_forget)
