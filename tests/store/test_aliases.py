"""The price of a model that has none of its own: the one its alias names, asked after the exact name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.store.base import AgentStore
from agent.store.orm import OrmStore
from agent.testing import InMemoryStore
from agent.testing.contracts.rows import price, usage

ALIASES = {"m-2026-03-01": "m", "m": "elsewhere"}


@pytest.mark.django_db
@pytest.mark.parametrize("store", [OrmStore(model_aliases=ALIASES), InMemoryStore(model_aliases=ALIASES)], ids=type)
def test_the_exact_name_is_priced_first_then_its_alias_and_no_prefix(store: AgentStore) -> None:
    named = store.supersede_price(price())
    store.supersede_price(replace(price(7), model_id="elsewhere"))
    models = ["m", "m-2026-03-01", "m-mini", "M", "m "]
    entries = [store.record_usage(replace(usage(), model_id=model)) for model in models]
    assert [entry.price_id for entry in entries] == [named.id, named.id, None, None, None]
    assert [entry.cost_nanos for entry in entries] == [1_000_000, 1_000_000, None, None, None]
