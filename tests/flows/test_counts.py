"""What a row of the ledger counts and costs: a true zero is known, a zero that cannot be is not free."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from agent.domain.commands import NewPrice
from agent.domain.model_calls import ModelRequest, Usage
from agent.flows.ledger import count_broken
from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, tool
from agent.store import get_store
from governance import queries
from governance.days import DayRange
from governance.queries import Selection
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]
DOLLAR = 10**9  # a dollar a million tokens


def asked(site: MakeSite, *replies: Any, price: NewPrice | None = None) -> Any:
    """The first row of a turn with these answers."""

    @tool
    def look(number: int) -> int:
        """Look it up."""
        return number

    desk = site(list(replies))
    agent(name="desk", prompt="You help.", tools=[look])(type("Desk", (), {}))
    if price is not None:
        desk.store.supersede_price(price)
    run = desk.turn("Where is it?", agent="desk")
    return desk.store.usage_of_run(run.id)[0]


def priced(plain: int = DOLLAR, output: int = 2 * DOLLAR, **rates: Any) -> NewPrice:
    return NewPrice(model_id="m", input_per_million_nanos=plain, output_per_million_nanos=output, **rates)


ZERO = Usage(input_tokens=0, output_tokens=0)
SAID = {
    "an answer": [ScriptedReply("It was sent yesterday.", usage=ZERO, model_id="m")],
    "a call": [ScriptedReply(calls=[call("look", number=1)], usage=ZERO, model_id="m"), "Done."],
    "no input": [ScriptedReply("It was sent.", usage=Usage(input_tokens=0, output_tokens=4), model_id="m")],
    "no output": [ScriptedReply("It was sent.", usage=Usage(input_tokens=9, output_tokens=0), model_id="m")],
}


@pytest.mark.parametrize("replies", SAID.values(), ids=SAID)
def test_a_zero_beside_an_answer_is_estimated_and_not_free(site: MakeSite, replies: list[Any]) -> None:
    """B104: and what was said beside it stands."""
    row = asked(site, *replies, price=priced())
    said = replies[0].usage
    assert row.tokens_source == "estimated"
    assert row.input_tokens == said.input_tokens or row.input_tokens > 0
    assert row.output_tokens == said.output_tokens or row.output_tokens > 0
    assert min(row.input_tokens, row.output_tokens) > 0
    assert row.cost_nanos == row.input_tokens * 1000 + row.output_tokens * 2000


TRUE_ZEROS = {
    "a reported cost": (
        ScriptedReply("Yes.", usage=Usage(input_tokens=9, output_tokens=3, reported_cost_usd=Decimal(0)), model_id="m"),
        priced(),
    ),
    "a price": (ScriptedReply("Yes.", usage=Usage(input_tokens=9, output_tokens=3), model_id="m"), priced(0, 0)),
    "no tokens": (ScriptedReply("", usage=ZERO, model_id="m"), priced()),
}


@pytest.mark.parametrize(("reply", "price"), TRUE_ZEROS.values(), ids=TRUE_ZEROS)
def test_a_true_zero_is_known(site: MakeSite, reply: Any, price: NewPrice) -> None:
    """B97: on the row and in every sum; without a price and a report it is unknown."""
    row = asked(site, reply, price=price)
    assert (row.cost_nanos, row.tokens_source) == (0, "reported")
    spent = queries.spend_summary(Selection.of(DayRange.of()))
    assert (spent.cost_nanos, spent.unpriced_requests, spent.requests) == (0, 0, 1)


KEPT = Usage(reported_cost_usd=Decimal(0))


@pytest.mark.parametrize("price", [priced(), None], ids=["priced", "unpriced"])
def test_an_answer_that_a_provider_had_kept_is_a_row_of_nothing(site: MakeSite, price: NewPrice | None) -> None:
    """B112: neither its tokens nor its cost count for anybody, and the row says that it was told so."""
    row = asked(site, ScriptedReply("It was sent yesterday.", usage=KEPT, model_id="m"), price=price)
    assert (row.input_tokens, row.output_tokens, row.tokens_source) == (0, 0, "reported")
    assert (row.cost_nanos, row.reported_cost_nanos) == (0, 0)
    spent = queries.spend_summary(Selection.of(DayRange.of()))
    assert (spent.cost_nanos, spent.unpriced_requests, spent.requests) == (0, 0, 1)
    used = get_store().usage_between("alice", row.created_at, row.created_at + timedelta(seconds=1))
    assert (used.used_tokens, used.cost_nanos) == (0, 0)


def test_a_kept_answer_that_breaks_off_is_nothing_as_well() -> None:
    request = ModelRequest(system="You help.", messages=())
    counted = count_broken(request, KEPT, "It was se")
    assert (counted.usage, counted.source) == (KEPT, "reported")


def test_without_a_price_no_count_is_a_zero(site: MakeSite) -> None:
    row = asked(site, ScriptedReply("Yes.", usage=Usage(input_tokens=9, output_tokens=3), model_id="m"))
    assert row.cost_nanos is None
    spent = queries.spend_summary(Selection.of(DayRange.of()))
    assert (spent.cost_nanos, spent.unpriced_requests, spent.unpriced_tokens) == (None, 1, 12)


CACHES = {
    "read": (Usage(input_tokens=1000, output_tokens=0, cache_read_tokens=800), 200_000 + 80_000),
    "written": (Usage(input_tokens=1000, output_tokens=0, cache_write_tokens=800), 200_000 + 1_600_000),
    "written for an hour": (
        Usage(input_tokens=1000, output_tokens=0, cache_write_tokens=800, cache_write_1h_tokens=300),
        200_000 + 1_000_000 + 900_000,
    ),
    "more than was sent": (
        Usage(input_tokens=100, output_tokens=0, cache_read_tokens=80, cache_write_tokens=80),
        8_000 + 160_000,
    ),
}


@pytest.mark.parametrize(("usage", "nanos"), CACHES.values(), ids=CACHES)
def test_what_is_cached_is_counted_once(
    site: MakeSite, usage: Usage, nanos: int, caplog: pytest.LogCaptureFixture
) -> None:
    """B92, B94: a part of the input, each kind at its own rate, and never more than once."""
    rates = {
        "cache_read_per_million_nanos": DOLLAR // 10,
        "cache_write_per_million_nanos": 2 * DOLLAR,
        "cache_write_1h_per_million_nanos": 3 * DOLLAR,
    }
    row = asked(site, ScriptedReply("", usage=usage, model_id="m"), price=priced(DOLLAR, 0, **rates))
    assert (row.input_tokens, row.cost_nanos) == (usage.input_tokens, nanos)
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    assert ("impossible usage" in caplog.text) == (cached > usage.input_tokens)
