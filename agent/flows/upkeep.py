"""Removing what was only kept for a while: streams that nobody can join any more, idempotency keys of yesterday."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from agent.sinks import get_sink
from agent.store import get_store

KEY_HOURS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    streams: int
    keys: int


def purge() -> Purged:
    """Remove what is past its time; how much. Idempotent, and safe in several processes at once."""
    store = get_store()
    keys = 0
    if "idempotency" in store.capabilities:
        keys = store.purge_idempotency_keys(store.clock() - timedelta(hours=KEY_HOURS))
    return Purged(streams=get_sink().purge_expired(), keys=keys)
