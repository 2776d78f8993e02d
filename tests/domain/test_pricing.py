"""Money: every kind of token has a rate, one rounding, and unknown is never free."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.ledger import ModelPrice
from agent.domain.pricing import estimated_cost_nanos, rates_for, reported_nanos, row_cost, same_figures, usd

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DOLLAR = 10**9  # a dollar per million tokens, in nanos


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_1h_tokens: int | None = None


def price(
    plain: int = DOLLAR,
    output: int = 4 * DOLLAR,
    *,
    write: int | None = None,
    read: int | None = None,
    write_1h: int | None = None,
    tiers: list[dict[str, int]] | None = None,
) -> ModelPrice:
    return ModelPrice(
        id="p1",
        model_id="m",
        input_per_million_nanos=plain,
        output_per_million_nanos=output,
        cache_write_per_million_nanos=write,
        cache_read_per_million_nanos=read,
        cache_write_1h_per_million_nanos=write_1h,
        tiers=tiers,
        effective_from=NOW,
        source="test",
        created_at=NOW,
    )


CACHED = Counts(input_tokens=1000, cache_read_tokens=800)
WRITTEN = Counts(input_tokens=1000, cache_write_tokens=600, cache_write_1h_tokens=200)
TIERED = [
    {"aboveInputTokens": 200_000, "inputPerMillionNanos": 2 * DOLLAR, "outputPerMillionNanos": 8 * DOLLAR},
    {"aboveInputTokens": 100_000, "inputPerMillionNanos": 3 * DOLLAR, "outputPerMillionNanos": 6 * DOLLAR},
]

ESTIMATES = [
    ("plain input and output", price(), Counts(input_tokens=1000, output_tokens=500), 3_000_000),
    ("cache reads are part of the input", price(read=DOLLAR // 10), CACHED, 280_000),
    ("cache reads without a rate cost as input", price(), CACHED, 1_000_000),
    ("cache reads may be free", price(read=0), CACHED, 200_000),
    ("both kinds of write", price(write=2 * DOLLAR, write_1h=3 * DOLLAR), WRITTEN, 400_000 + 800_000 + 600_000),
    ("writes for an hour without a rate cost as writes", price(write=2 * DOLLAR), WRITTEN, 400_000 + 1_200_000),
    ("writes without a rate cost as input", price(), WRITTEN, 1_000_000),
    ("a rate for an hour alone", price(write_1h=3 * DOLLAR), WRITTEN, 400_000 + 400_000 + 600_000),
    (
        "more cached than sent: the plain part is not below 0",
        price(write=2 * DOLLAR, read=DOLLAR),
        Counts(input_tokens=100, cache_write_tokens=80, cache_read_tokens=80),
        240_000,
    ),
    (
        "more for an hour than written",
        price(write=2 * DOLLAR, write_1h=3 * DOLLAR),
        Counts(input_tokens=100, cache_write_tokens=10, cache_write_1h_tokens=30),
        90_000 + 90_000,
    ),
    ("no tokens", price(), Counts(), 0),
    ("a price of 0", price(0, 0), Counts(input_tokens=10**6, output_tokens=10**6), 0),
    ("half a nano is rounded up", price(500_000, 0), Counts(input_tokens=1), 1),
    ("less than half is rounded down", price(499_999, 0), Counts(input_tokens=1), 0),
    ("rounded once, not for each part", price(400_000, 400_000), Counts(input_tokens=1, output_tokens=1), 1),
    ("counts beyond 64 bits", price(10**12), Counts(input_tokens=10**13), 10**19),
    ("below every tier", price(tiers=TIERED), Counts(input_tokens=100_000), 100_000_000),
    ("above the first tier, all of it", price(tiers=TIERED), Counts(input_tokens=100_001), 300_003_000),
    ("at the next tier still the first", price(tiers=TIERED), Counts(input_tokens=200_000), 600_000_000),
    (
        "the highest tier prices input and output",
        price(tiers=TIERED),
        Counts(input_tokens=200_001, output_tokens=1000),
        400_002_000 + 8_000_000,
    ),
    (
        "a tier without a cache rate falls back to its own input",
        price(read=1, tiers=TIERED),
        Counts(input_tokens=200_001, cache_read_tokens=200_001),
        400_002_000,
    ),
    (
        "a tier that names one price keeps the others",
        price(output=5 * DOLLAR, tiers=[{"aboveInputTokens": 0, "inputPerMillionNanos": 0}]),
        Counts(input_tokens=10, output_tokens=1),
        5_000,
    ),
]


@pytest.mark.parametrize(
    ("rates", "counts", "nanos"), [row[1:] for row in ESTIMATES], ids=[row[0] for row in ESTIMATES]
)
def test_estimate(rates: ModelPrice, counts: Counts, nanos: int) -> None:
    assert estimated_cost_nanos(rates, counts) == nanos


tokens = st.integers(0, 10**7)
maybe_tokens = st.none() | tokens
nanos_per_million = st.integers(0, 10**12)
maybe_nanos = st.none() | nanos_per_million


@given(
    st.builds(price, nanos_per_million, nanos_per_million, write=maybe_nanos, read=maybe_nanos, write_1h=maybe_nanos),
    st.builds(
        Counts,
        input_tokens=tokens,
        output_tokens=tokens,
        cache_write_tokens=maybe_tokens,
        cache_read_tokens=maybe_tokens,
        cache_write_1h_tokens=maybe_tokens,
    ),
)
def test_estimate_is_the_exact_sum_rounded_half_up(rates: ModelPrice, counts: Counts) -> None:
    rate = rates_for(rates, counts.input_tokens)
    written, read = counts.cache_write_tokens or 0, counts.cache_read_tokens or 0
    hour = counts.cache_write_1h_tokens or 0
    exact = (
        Fraction(max(counts.input_tokens - written - read, 0), 10**6) * rate.input
        + Fraction(max(written - hour, 0), 10**6) * rate.cache_write
        + Fraction(hour, 10**6) * rate.cache_write_1h
        + Fraction(read, 10**6) * rate.cache_read
        + Fraction(counts.output_tokens, 10**6) * rate.output
    )
    off = estimated_cost_nanos(rates, counts) - exact
    assert Fraction(-1, 2) < off <= Fraction(1, 2)


@pytest.mark.parametrize(
    ("reported", "nanos"),
    [
        ("0", 0),
        ("0.0000000005", 1),
        ("0.0000000004999999999999999999999999999999999", 0),
        ("0.000000001", 1),
        ("1.0000000015", 1_000_000_002),
        ("1234567.891234567", 1_234_567_891_234_567),
        ("1E+3", 10**12),
    ],
)
def test_reported_cost_is_rounded_half_up_to_the_nano(reported: str, nanos: int) -> None:
    assert reported_nanos(Decimal(reported)) == nanos


SOME = Counts(input_tokens=1000)
ROWS = [
    ("reported wins and the estimate is kept", price(), 7, (7, 1_000_000, 7, "p1")),
    ("reported without a price", None, 7, (7, None, 7, None)),
    ("reported 0 is free, not unknown", price(), 0, (0, 1_000_000, 0, "p1")),
    ("estimated", price(), None, (None, 1_000_000, 1_000_000, "p1")),
    ("a free model costs 0", price(0, 0), None, (None, 0, 0, "p1")),
    ("neither: unpriced", None, None, (None, None, None, None)),
]


@pytest.mark.parametrize(("rates", "reported", "columns"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_row_cost(
    rates: ModelPrice | None, reported: int | None, columns: tuple[int | None, int | None, int | None, str | None]
) -> None:
    cost = row_cost(rates, SOME, reported=reported)
    assert (cost.reported_cost_nanos, cost.estimated_cost_nanos, cost.cost_nanos, cost.price_id) == columns


@pytest.mark.parametrize(
    ("nanos", "shown"), [(0, 0.0), (1, 1e-9), (280_000, 0.00028), (1_234_567_891, 1.234567891), (-5, -5e-9)]
)
def test_usd_has_nine_places(nanos: int, shown: float) -> None:
    assert usd(nanos) == shown


def test_prices_are_the_same_when_they_charge_the_same() -> None:
    assert same_figures(price(), price(tiers=[]))
    assert not same_figures(price(read=0), price())
    assert not same_figures(price(tiers=TIERED), price())
