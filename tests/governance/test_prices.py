"""What a call costs agrees with the price data to the nano, and prices are seeded, set and kept (spec 08 §2-3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings
from genai_prices import Usage, calc_price

from agent.domain.commands import NewPrice, RecordUsage
from agent.errors import Invalid
from agent.flows import prices
from agent.models import ModelPrice
from agent.store import get_store
from governance.models import RepriceAudit
from governance.repricing import Repricing, reprice
from governance.seeds import ALWAYS, seed
from tests.governance import rows

AT = datetime(2026, 11, 1, tzinfo=UTC)
DOLLAR = 10**9

OPENAI_CHAT = {
    "prompt_tokens": 2006,
    "completion_tokens": 300,
    "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 192, "accepted_prediction_tokens": 0},
}
OPENAI_RESPONSES = {
    "input_tokens": 36,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 87,
    "output_tokens_details": {"reasoning_tokens": 64},
}
OPENAI_LONG = {"input_tokens": 301_234, "input_tokens_details": {"cached_tokens": 201_000}, "output_tokens": 901}
ANTHROPIC = {
    "input_tokens": 2095,
    "cache_creation_input_tokens": 2051,
    "cache_read_input_tokens": 10_233,
    "output_tokens": 503,
}
ANTHROPIC_HOUR = ANTHROPIC | {
    "cache_creation": {"ephemeral_5m_input_tokens": 456, "ephemeral_1h_input_tokens": 1595},
}
ANTHROPIC_LONG = ANTHROPIC | {"cache_read_input_tokens": 240_001}


def counts_of(payload: Mapping[str, Any]) -> dict[str, int]:
    """A vendor's usage in our convention: cache counts are subsets of the input, reasoning one of the output."""
    if "cache_read_input_tokens" in payload:
        written, read = payload["cache_creation_input_tokens"], payload["cache_read_input_tokens"]
        hour = payload.get("cache_creation", {}).get("ephemeral_1h_input_tokens", 0)
        return {
            "input_tokens": payload["input_tokens"] + written + read,
            "output_tokens": payload["output_tokens"],
            "cache_write_tokens": written,
            "cache_write_1h_tokens": hour,
            "cache_read_tokens": read,
        }
    details = payload.get("prompt_tokens_details") or payload["input_tokens_details"]
    return {
        "input_tokens": payload.get("prompt_tokens", payload.get("input_tokens")),
        "output_tokens": payload.get("completion_tokens", payload.get("output_tokens")),
        "cache_read_tokens": details["cached_tokens"],
    }


def theirs(model: str, provider: str, counts: Mapping[str, int]) -> int:
    """The price data's own answer, in nanos rounded once."""
    told = calc_price(Usage(**counts), model, provider_id=provider, genai_request_timestamp=AT)
    return int((told.total_price * DOLLAR).to_integral_value(ROUND_HALF_UP))


@pytest.mark.parametrize(
    ("provider", "model", "payload"),
    [
        ("openai", "gpt-5.2", OPENAI_CHAT),
        ("openai", "gpt-5.2-2025-12-11", OPENAI_CHAT),
        ("openai", "gpt-4o-mini", OPENAI_CHAT),
        ("openai", "gpt-4o-mini-2024-07-18", OPENAI_RESPONSES),
        ("openai", "gpt-5.4", OPENAI_LONG),
        ("openai", "o3", OPENAI_CHAT),
        ("anthropic", "claude-opus-4-5-20251101", ANTHROPIC),
        ("anthropic", "claude-opus-4-5", ANTHROPIC_HOUR),
        ("anthropic", "claude-sonnet-4-5-20250929", ANTHROPIC_HOUR),
        ("anthropic", "claude-sonnet-4-5", ANTHROPIC_LONG),
        ("anthropic", "claude-opus-4-6", ANTHROPIC_LONG),
    ],
)
def test_usage_that_vendors_report_costs_what_the_price_data_says(
    db: None, provider: str, model: str, payload: Mapping[str, Any]
) -> None:
    seed([model])
    counts = counts_of(payload)
    usage: dict[str, Any] = {"thread_id": "t", "actor_ref": "a", "purpose": "chat", "model_id": model, **counts}
    entry = get_store().record_usage(RecordUsage(**usage))
    wanted = theirs(model, provider, counts)
    assert wanted
    assert entry.cost_nanos == entry.estimated_cost_nanos == wanted
    price = ModelPrice.objects.get(pk=entry.price_id)
    assert (price.model_id, str(price.note).partition(":")[0]) == (model, provider)


def test_a_model_that_got_cheaper_has_a_price_for_each_time(db: None) -> None:
    seed(["o3"])
    dated = ModelPrice.objects.filter(model_id="o3").order_by("effective_from")
    assert [price.effective_from for price in dated] == [ALWAYS, datetime(2025, 6, 10, tzinfo=UTC)]
    assert dated[0].input_per_million_nanos > dated[1].input_per_million_nanos


def test_seeding_again_adds_nothing_and_changes_nothing(db: None) -> None:
    call_command("agent_seed_prices", stdout=(text := StringIO()))
    assert "gpt-5.2 from 1970-01-01 (openai: gpt-5.2)" in text.getvalue()
    before = list(ModelPrice.objects.order_by("pk").values())
    assert len(before) > 100
    call_command("agent_seed_prices", stdout=(text := StringIO()))
    assert text.getvalue().startswith("0 prices added")
    assert list(ModelPrice.objects.order_by("pk").values()) == before


def test_seeding_does_not_put_itself_in_front_of_a_price_that_people_set(db: None) -> None:
    prices.supersede(_price("o3", effective_from=datetime(2025, 1, 1, tzinfo=UTC), source="admin"))
    done = seed(["o3"])
    assert done.kept == ["o3"]
    in_force = get_store().price_in_force("o3", AT)
    assert in_force is not None
    assert in_force.source == "admin"


def test_a_corrected_figure_is_in_force_from_the_seeding_on(db: None) -> None:
    rows.price("gpt-5.2", since=ALWAYS, source="seed:0.0.1")
    (added,) = seed(["gpt-5.2"]).added
    assert added.effective_from is not None
    assert added.effective_from > AT
    assert not seed(["gpt-5.2"]).added


def test_models_of_the_ledger_are_seeded_by_the_rules_of_the_data(db: None) -> None:
    """B98: dated ids are known by rule, and no name by its beginning."""
    for name in ("claude-opus-4-5-20251101", "gpt-4o-mine", "GPT-4O", "gpt-4o "):
        rows.entry(datetime.now(UTC), model_id=name, estimated_cost_nanos=None)
    seed()
    assert get_store().price_in_force("claude-opus-4-5-20251101", AT)
    assert get_store().price_in_force("gpt-4o-mine", AT) is None
    assert get_store().price_in_force("gpt-4o ", AT) is None


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"model_id": " "}, "modelId"),
        ({"model_id": "a\x00b"}, "modelId"),
        ({"input_per_million_nanos": -1}, "inputPer1M"),
        ({"cache_read_per_million_nanos": 10**18}, "cacheReadPer1M"),
    ],
)
def test_what_is_no_price_is_refused_by_its_field(db: None, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(Invalid) as caught:
        prices.supersede(_price(**fields))
    assert set(caught.value.fields) == {named}
    assert not ModelPrice.objects.exists()


def test_repricing_fills_what_was_unknown_and_nothing_else(db: None) -> None:
    """B100: known costs stay, each batch has its audit, a dry run changes nothing."""
    rows.price("m", since=rows.NOON - timedelta(days=7))
    unknown = rows.entry(estimated_cost_nanos=None)
    reported = rows.entry(estimated_cost_nanos=None, reported_cost_nanos=5)
    known = rows.entry()
    too_old = rows.entry(rows.NOON - timedelta(days=8), estimated_cost_nanos=None)
    arguments = ("agent_reprice", "--reason", "letter of the vendor", "--by", "ana")
    call_command(*arguments, "--dry-run", stdout=(text := StringIO()))
    assert "1 rows would be priced" in text.getvalue()
    assert not RepriceAudit.objects.exists()
    call_command(*arguments, stdout=(text := StringIO()))
    assert "0.000120000 USD after; 1 have no price still" in text.getvalue()
    costs = []
    for each in (unknown, reported, known, too_old):
        each.refresh_from_db()
        costs.append(each.cost_nanos)
    assert costs == [120_000, 5, 1000, None]
    audit = RepriceAudit.objects.get()
    assert (audit.actor_ref, audit.reason) == ("ana", "letter of the vendor")
    assert (audit.rows_priced, audit.nanos_before, audit.nanos_after) == (1, 0, 120_000)


def test_estimates_are_priced_again_in_a_stated_range_only(db: None) -> None:
    rows.price("m")
    known = rows.entry()
    with pytest.raises(Invalid, match="range"):
        reprice(Repricing(by="ana", reason="x", include_estimated=True))
    with pytest.raises(CommandError, match="reason"):
        call_command("agent_reprice", "--reason", " ")
    day = timedelta(days=1)
    reported = rows.entry(reported_cost_nanos=5, estimated_cost_nanos=1)
    order = Repricing(by="ana", reason="x", include_estimated=True, start=rows.NOON - day, end=rows.NOON + day)
    assert reprice(order, dry_run=True).rows == 1  # what was reported is not foreseen to change either
    assert reprice(order).rows == 1
    known.refresh_from_db()
    reported.refresh_from_db()
    assert (known.cost_nanos, reported.cost_nanos, reported.estimated_cost_nanos) == (120_000, 5, 1)
    audit = RepriceAudit.objects.get()
    assert (audit.nanos_before, audit.nanos_after, audit.include_estimated) == (1000, 120_000, True)


def test_an_alias_has_the_price_of_its_model_and_the_row_says_which(db: None) -> None:
    price = rows.price("m")
    with override_settings(AGENT={"MODEL_ALIASES": {"deployment-7": "m"}}):
        entry = get_store().record_usage(
            RecordUsage(thread_id="t", actor_ref="a", purpose="chat", model_id="deployment-7", input_tokens=10)
        )
    assert (entry.model_id, entry.price_id, entry.cost_nanos) == ("deployment-7", price.pk, 10_000)


def test_models_without_a_price_are_warned_of(db: None) -> None:
    rows.entry(datetime.now(UTC), model_id="preview-5", estimated_cost_nanos=None)
    call_command("check", "--database", "default", stderr=(text := StringIO()))
    assert "governance.W001" in text.getvalue()
    assert "preview-5" in text.getvalue()


def _price(model_id: str = "m", **fields: Any) -> NewPrice:
    values: dict[str, Any] = {"input_per_million_nanos": 1, "output_per_million_nanos": 2}
    return NewPrice(model_id=model_id, **(values | fields))
