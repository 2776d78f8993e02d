"""Removing what was only kept for a while: streams, keys, tokens, journals, what was deleted; and filling an index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.conf import agent_settings
from agent.domain.clock import epoch_ms
from agent.sinks import get_sink
from agent.store import get_store
from agent.store.companions import token_store

KEY_HOURS = 24
JOURNALS_AT_ONCE = 50_000  # runs; what is left of a long history waits for the next time

# What apps that stand on this one have done from time to time by a serving process, and every how many seconds.
others: dict[Callable[[], object], float] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """How much was removed."""

    streams: int
    keys: int
    tokens: int
    journals: int


def purge() -> Purged:
    """Remove what is past its time. Idempotent, and safe in several processes at once."""
    kept = {"keys": purge_keys(), "tokens": _purge_tokens(), "journals": _purge_journals()}
    return Purged(streams=get_sink().purge_expired(), **kept)


def purge_keys() -> int:
    """Remove idempotency keys of yesterday; how many."""
    store = get_store()
    if "idempotency" not in store.capabilities:
        return 0
    return store.purge_idempotency_keys(store.clock() - timedelta(hours=KEY_HOURS))


def purge_deleted_threads(before: datetime) -> int:
    """Remove conversations for good that were deleted before then and that no run holds; the ledger stays."""
    store, gone = get_store(), 0
    while threads := store.deleted_threads(before):
        removed = sum(store.purge_thread(thread_id) for thread_id in threads)
        gone += removed
        if not removed and store.deleted_threads(before) == threads:
            return gone  # they are held by what does not let go: the next time finds them
    return gone


def backfill_proposals(batch: int) -> int:
    """Let workers see the proposals that were written without an index, a batch at a time; how many."""
    store, filled = get_store(), 0
    if "proposals" not in store.capabilities:
        return 0
    while done := store.backfill_proposal_index(batch):
        filled += done
    return filled


def _purge_tokens() -> int:
    store = get_store()
    kept = token_store(store)
    return 0 if kept is None else kept.purge_expired_tokens(epoch_ms(store.clock()))


def _purge_journals() -> int:
    """Journals of runs that were settled more than `JOURNAL_DAYS` ago; each hundred in a transaction of its own."""
    store, gone = get_store(), 0
    if "journal" not in store.capabilities:
        return 0
    before = store.clock() - timedelta(days=agent_settings().journal_days)
    while gone < JOURNALS_AT_ONCE and (removed := store.purge_journals(before)):
        gone += removed
    return gone
