"""What a ledger row costs (spec 08 §2): integers of nano-USD, one rounding, and None for what nobody knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from agent.domain.ledger import ModelPrice

NANOS_PER_USD = 10**9
_TOKENS_PER_PRICE = 1_000_000


class TokenCounts(Protocol):
    """The counts of one call: cache counts are subsets of the input, None is "the provider said nothing"."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def cache_write_tokens(self) -> int | None: ...
    @property
    def cache_read_tokens(self) -> int | None: ...
    @property
    def cache_write_1h_tokens(self) -> int | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What applies to one call, in nanos per million tokens; every kind of token has a rate."""

    input: int
    output: int
    cache_write: int
    cache_read: int
    cache_write_1h: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCost:
    """The four price columns of a ledger row. `cost_nanos` None is unpriced, 0 is free."""

    reported_cost_nanos: int | None
    estimated_cost_nanos: int | None
    cost_nanos: int | None
    price_id: str | None


def rates_for(price: ModelPrice, input_tokens: int) -> Rates:
    """The rates of the highest tier that the call's input exceeds, else the price's own."""
    tier = _tier(price, input_tokens)
    if tier is None:
        return _filled(
            price.input_per_million_nanos,
            price.output_per_million_nanos,
            cache_write=price.cache_write_per_million_nanos,
            cache_read=price.cache_read_per_million_nanos,
            cache_write_1h=price.cache_write_1h_per_million_nanos,
        )
    return _filled(
        tier.get("inputPerMillionNanos", price.input_per_million_nanos),
        tier.get("outputPerMillionNanos", price.output_per_million_nanos),
        cache_write=tier.get("cacheWritePerMillionNanos"),
        cache_read=tier.get("cacheReadPerMillionNanos"),
        cache_write_1h=tier.get("cacheWrite1hPerMillionNanos"),
    )


def estimated_cost_nanos(price: ModelPrice, counts: TokenCounts) -> int:
    """The price of a call's tokens; half a nano is rounded up, once, at the end."""
    rates = rates_for(price, counts.input_tokens)
    written, read = counts.cache_write_tokens or 0, counts.cache_read_tokens or 0
    written_1h = counts.cache_write_1h_tokens or 0
    # A provider that reports more cached tokens than input tokens must not earn money back for them.
    plain = max(counts.input_tokens - written - read, 0)
    total = (
        plain * rates.input
        + max(written - written_1h, 0) * rates.cache_write
        + written_1h * rates.cache_write_1h
        + read * rates.cache_read
        + counts.output_tokens * rates.output
    )
    return (2 * total + _TOKENS_PER_PRICE) // (2 * _TOKENS_PER_PRICE)


def reported_nanos(usd: Decimal) -> int:
    """What a provider reported, in nanos; half a nano is rounded up."""
    above, below = usd.as_integer_ratio()  # exact: a decimal context would round once more, at 28 digits
    return (2 * above * NANOS_PER_USD + below) // (2 * below)


def row_cost(price: ModelPrice | None, counts: TokenCounts, *, reported: int | None) -> RowCost:
    """Reported wins over estimated; both are kept; with neither the row is unpriced."""
    estimated = None if price is None else estimated_cost_nanos(price, counts)
    return RowCost(
        reported_cost_nanos=reported,
        estimated_cost_nanos=estimated,
        cost_nanos=estimated if reported is None else reported,
        price_id=None if price is None else price.id,
    )


def usd(nanos: int) -> float:
    """Nanos as the number of USD that JSON shows, 9 places."""
    return round(nanos / NANOS_PER_USD, 9)


def same_figures(one: ModelPrice, other: ModelPrice) -> bool:
    """Whether two prices would charge the same for every call."""
    return _figures(one) == _figures(other)


def _figures(price: ModelPrice) -> tuple[Any, ...]:
    return (
        price.input_per_million_nanos,
        price.output_per_million_nanos,
        price.cache_write_per_million_nanos,
        price.cache_read_per_million_nanos,
        price.cache_write_1h_per_million_nanos,
        price.tiers or None,
    )


def _tier(price: ModelPrice, input_tokens: int) -> Mapping[str, Any] | None:
    exceeded = [tier for tier in price.tiers or () if input_tokens > tier["aboveInputTokens"]]
    return max(exceeded, key=lambda tier: int(tier["aboveInputTokens"]), default=None)


def _filled(
    plain: int, output: int, *, cache_write: int | None, cache_read: int | None, cache_write_1h: int | None
) -> Rates:
    """A rate that is not given is the next wider one; 0 is a rate."""
    write = plain if cache_write is None else cache_write
    return Rates(
        input=plain,
        output=output,
        cache_write=write,
        cache_read=plain if cache_read is None else cache_read,
        cache_write_1h=write if cache_write_1h is None else cache_write_1h,
    )
