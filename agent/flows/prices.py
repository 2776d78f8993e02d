"""Prices: a row is never edited; a new one is in force from its instant (spec 08 §3)."""

from __future__ import annotations

from dataclasses import replace

from agent.domain.clock import YEARS
from agent.domain.commands import NewPrice
from agent.domain.ledger import ModelPrice
from agent.domain.text import is_exact
from agent.errors import Invalid
from agent.store import get_store

MOST_NANOS = 10**15  # a million dollars for a million tokens; a call of 10^12 tokens would still be a known sum
NAME_MAX = 128
NOTE_MAX = 500
FIGURES = {
    "input_per_million_nanos": "inputPer1M",
    "output_per_million_nanos": "outputPer1M",
    "cache_write_per_million_nanos": "cacheWritePer1M",
    "cache_write_1h_per_million_nanos": "cacheWrite1hPer1M",
    "cache_read_per_million_nanos": "cacheReadPer1M",
}


def supersede(price: NewPrice) -> ModelPrice:
    """Put a price in force; rows already written keep theirs. The one in force, where it charges the same.

    Raises `Invalid` for what is no price, `Conflict` for a second one from the same instant.
    """
    named = replace(price, model_id=price.model_id.strip())
    if not 1 <= len(named.model_id) <= NAME_MAX or not is_exact(named.model_id):
        raise Invalid.field("modelId", f"1 to {NAME_MAX} characters, without NUL")
    if named.note is not None and len(named.note) > NOTE_MAX:
        raise Invalid.field("note", f"at most {NOTE_MAX} characters")
    for attribute, field in FIGURES.items():
        nanos = getattr(named, attribute)
        if nanos is not None and not 0 <= nanos <= MOST_NANOS:
            raise Invalid.field(field, f"0 to {MOST_NANOS // 10**9:,} US dollars for a million tokens")
    since = named.effective_from
    if since is not None and (since.tzinfo is None or since.year not in YEARS):
        raise Invalid.field("effectiveFrom", f"an instant of the years {YEARS.start} on, with its time zone")
    store = get_store()
    with store.atomic():
        return store.supersede_price(named)
