"""The range by model and by person, with what only their own screens show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from django.db.models import Max

from agent.domain.ledger import ModelPrice
from agent.domain.pricing import rates_for
from agent.models import UsageEntry
from agent.store import get_store
from governance.base import created_in, database
from governance.days import span_of
from governance.models import UsageRollup
from governance.queries.changes import Share, spend_shares
from governance.queries.parts import parts
from governance.queries.selection import Selection
from governance.queries.sums import thread_counts, usage_sums
from governance.reading import one_view
from governance.rollups.marks import USAGE

MILLION = 1_000_000
CACHE = ("input_tokens", "cache_write_tokens", "cache_read_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShare:
    share: Share
    cache_read: Fraction | None  # of the input tokens
    cache_write: Fraction | None
    price: ModelPrice | None  # in force now, under its own name or an alias's


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonShare:
    share: Share
    threads: int
    last_used_at: datetime | None  # within the range; looked up for the people that are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    total: int
    rows: Sequence[PersonShare]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpriced:
    """A model whose calls could not be priced."""

    model_id: str
    requests: int
    tokens: int


def model_shares(selection: Selection) -> list[ModelShare]:
    """Models, dearest first."""
    with one_view():
        shares = spend_shares(selection, "model_id")
        cached = usage_sums(selection, ("model_id",), CACHE)
        prices = prices_in_force([str(share.key) for share in shares])
    return [
        ModelShare(
            share=share,
            cache_read=_of_input(cached.get((share.key,), {}), "cache_read_tokens"),
            cache_write=_of_input(cached.get((share.key,), {}), "cache_write_tokens"),
            price=prices.get(str(share.key)),
        )
        for share in shares
    ]


def prices_in_force(models: Sequence[str]) -> Mapping[str, ModelPrice]:
    """The price that a call of each model would have now, where there is one."""
    store = get_store()
    named = {price.model_id: price for price in store.list_current_prices()}
    now = store.clock()
    found = {model: named.get(model) or store.price_in_force(model, now) for model in models if model in named}
    return {model: price for model, price in found.items() if price is not None}


def cache_saved(selection: Selection) -> int | None:
    """About how much less the input cost because it was read from a cache, at the prices now; None: nothing was."""
    with one_view():
        sums = usage_sums(selection, ("model_id",), CACHE)
        prices = {price.model_id: rates_for(price, 0) for price in current_prices()}
    saved = [
        each["cache_read_tokens"] * (rates.input - rates.cache_read)
        - each["cache_write_tokens"] * (rates.cache_write - rates.input)
        for (model,), each in sums.items()
        if each["cache_read_tokens"] and (rates := prices.get(model)) is not None
    ]
    return sum(saved) // MILLION if saved else None


def current_prices() -> list[ModelPrice]:
    """The price in force of every model that has one."""
    return get_store().list_current_prices()


def price_history(model_id: str) -> list[ModelPrice]:
    """All prices of a model, the newest first, one that is yet to come before those in force."""
    return get_store().price_history(model_id)


def people(selection: Selection, limit: int) -> People:
    """The people who used most, dearest first."""
    with one_view():
        shares = spend_shares(selection, "actor_ref")
        threads = thread_counts(selection, by_actor=True)
        shown = shares[:limit]
        last = _last_used(selection, [str(share.key) for share in shown])
    rows = [
        PersonShare(share=share, threads=threads.get(share.key, 0), last_used_at=last.get(str(share.key)))
        for share in shown
    ]
    return People(total=len(shares), rows=rows)


def unpriced_models(selection: Selection) -> list[Unpriced]:
    """Models with unpriced calls, those with most of them first."""
    sums = usage_sums(selection, ("model_id",), ("unpriced_requests", "unpriced_tokens"))
    found = [
        Unpriced(model_id=key[0], requests=each["unpriced_requests"], tokens=each["unpriced_tokens"])
        for key, each in sums.items()
        if each["unpriced_requests"]
    ]
    return sorted(found, key=lambda one: (-one.requests, one.model_id))


def _last_used(selection: Selection, actors: Sequence[str]) -> Mapping[str, datetime]:
    """When each was last at it: on the newest of their days that are rolled up, or in what is read live."""
    some = parts(USAGE, selection.range)
    rows = UsageEntry.objects.using(database()).filter(selection.q(), actor_ref__in=actors).order_by()
    looked_at = created_in(rows, some.live)
    if some.rolled:
        rolled = UsageRollup.objects.using(database()).filter(some.rolled_q(), selection.q(), actor_ref__in=actors)
        days = rolled.order_by().values_list("actor_ref").annotate(day=Max("day"))
        for actor, day in days:
            span = span_of(day, selection.range.zone)
            looked_at |= rows.filter(actor_ref=actor, created_at__gte=span.start, created_at__lt=span.end)
    return dict(looked_at.values_list("actor_ref").annotate(at=Max("created_at")))


def _of_input(sums: Mapping[str, int], name: str) -> Fraction | None:
    return Fraction(sums[name], sums["input_tokens"]) if sums.get("input_tokens") else None
