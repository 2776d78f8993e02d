"""Removing what was only kept for a while: streams that nobody can join any more, idempotency keys of yesterday."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from agent.sinks import get_sink
from agent.store import get_store

KEY_HOURS = 24

# What apps that stand on this one have done from time to time by a serving process, and every how many seconds.
others: dict[Callable[[], object], float] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    streams: int
    keys: int


def purge() -> Purged:
    """Remove what is past its time; how much. Idempotent, and safe in several processes at once."""
    keys = purge_keys()
    return Purged(streams=get_sink().purge_expired(), keys=keys)


def purge_keys() -> int:
    """Remove idempotency keys of yesterday; how many."""
    store = get_store()
    if "idempotency" not in store.capabilities:
        return 0
    return store.purge_idempotency_keys(store.clock() - timedelta(hours=KEY_HOURS))
