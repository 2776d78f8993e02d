"""Prices: what is in force, what lacks one, superseding, and pricing rows again; each for who may."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agent.models import ModelPrice, UsageEntry
from governance.models import RepriceAudit
from tests.console.conftest import SignIn
from tests.console.pages import html, text
from tests.governance.rows import entry, price

pytestmark = pytest.mark.django_db

PRICES = "/admin/governance/prices/"
JUNE: dict[str, Any] = {"fromDay": "2026-06-01", "toDay": "2026-06-30"}
NEW = {"act": "supersede", "model_id": "m", "input": "3", "output": "15.5"}
AGAIN = {"act": "reprice", "reason": "the price came late"}


@pytest.fixture
def keeper(staff: SignIn) -> Client:
    return staff("agent.view_modelprice", "agent.change_modelprice", "governance.reprice_usage")


def test_without_prices_it_says_which_command_brings_them(keeper: Client) -> None:
    assert "python manage.py agent_seed_prices" in text(keeper, PRICES)


def test_what_was_used_without_a_price_is_named_with_its_calls(keeper: Client) -> None:
    price("m")
    entry(model_id="gpt-x", estimated_cost_nanos=None)
    assert "1 call could not be priced: add a price for gpt-x" in text(keeper, PRICES, **JUNE)


def test_superseding_adds_a_row_and_leaves_written_ones(keeper: Client) -> None:
    price("m")
    old = entry(model_id="m")
    answer = keeper.post(PRICES, NEW, follow=True)
    assert "has its new price" in answer.content.decode()
    assert ModelPrice.objects.filter(model_id="m").count() == 2
    newest = ModelPrice.objects.filter(model_id="m").latest("effective_from")
    assert (newest.input_per_million_nanos, newest.output_per_million_nanos) == (3 * 10**9, 15_500_000_000)
    assert newest.created_by_ref is not None
    assert UsageEntry.objects.get(pk=old.pk).cost_nanos == old.cost_nanos


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"input": "-1"}, "greater than or equal to 0"),
        ({"input": "1.0000000001"}, "9 decimal places"),
        ({"input": "much"}, "Enter a number"),
        ({"output": ""}, "required"),
        ({"model_id": ""}, "required"),
        ({"effective_from": "soon"}, "valid date"),
        ({"effective_from": "0001-01-01T00:00"}, "an instant of the years 1970 on"),
    ],
)
def test_what_is_no_price_is_told_beside_its_field(keeper: Client, wrong: dict[str, str], told: str) -> None:
    answer = keeper.post(PRICES, NEW | wrong)
    assert answer.status_code == 400
    assert told in answer.content.decode()
    assert not ModelPrice.objects.exists()


def test_a_second_price_from_the_same_instant_is_refused(keeper: Client) -> None:
    at = {"effective_from": "2026-06-01T10:00"}
    assert keeper.post(PRICES, NEW | at).status_code == 302
    assert keeper.post(PRICES, NEW | at | {"input": "4"}).status_code == 400
    assert ModelPrice.objects.count() == 1


def test_numbers_may_be_written_as_the_language_writes_them(keeper: Client, settings: Any) -> None:
    settings.LANGUAGE_CODE = "de"
    assert keeper.post(PRICES, NEW | {"input": "2,5"}, headers={"accept-language": "de"}).status_code == 302
    assert ModelPrice.objects.get().input_per_million_nanos == 2_500_000_000


def test_pricing_again_first_says_what_it_would_do_and_then_does_it(keeper: Client) -> None:
    row = entry(estimated_cost_nanos=None)
    price("m")
    first = keeper.post(PRICES, AGAIN)
    assert "1 row would change, from $0.00 to $0.00012; 0 would stay unpriced." in first.content.decode()
    assert UsageEntry.objects.get(pk=row.pk).cost_nanos is None
    done = keeper.post(PRICES, AGAIN | {"sure": "1"}, follow=True)
    assert "1 row was priced" in done.content.decode()
    assert UsageEntry.objects.get(pk=row.pk).cost_nanos == 120_000
    assert RepriceAudit.objects.get().reason == "the price came late"


def test_superseding_a_price_with_tiers_says_that_they_end(keeper: Client) -> None:
    price("m", tiers=[{"aboveInputTokens": 200_000, "inputPerMillionNanos": 1, "outputPerMillionNanos": 2}])
    price("flat")
    assert "higher for long inputs (tiers)" in text(keeper, PRICES, modelId="m")
    assert "(tiers)" not in text(keeper, PRICES, modelId="flat")


def test_who_sees_one_tenant_prices_its_rows_alone(keeper: Client, settings: Any) -> None:
    settings.AGENT = {"CONSOLE_SCOPE": "tests.console.test_shell.only_north"}
    mine, theirs = (entry(estimated_cost_nanos=None, tenant_ref=tenant) for tenant in ("north", "south"))
    price("m")
    assert "1 row would change" in keeper.post(PRICES, AGAIN).content.decode()
    keeper.post(PRICES, AGAIN | {"sure": "1"})
    assert UsageEntry.objects.get(pk=mine.pk).cost_nanos == 120_000
    assert UsageEntry.objects.get(pk=theirs.pk).cost_nanos is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"reason": ""},
        {"include_estimated": "1"},
        {"from_day": "2026-06-01"},
        {"from_day": "9999-12-31", "to_day": "9999-12-31"},
    ],
)
def test_an_order_that_is_not_whole_changes_nothing(keeper: Client, wrong: dict[str, str]) -> None:
    entry(estimated_cost_nanos=None)
    price("m")
    assert keeper.post(PRICES, AGAIN | wrong | {"sure": "1"}).status_code == 400
    assert not RepriceAudit.objects.exists()


def test_who_may_only_look_sees_no_form_and_changes_nothing(staff: SignIn) -> None:
    reader = staff("agent.view_modelprice")
    page = html(reader, PRICES)
    assert "Put a price in force" not in page
    assert "Price rows again" not in page
    assert reader.post(PRICES, NEW).status_code == 403
    assert reader.post(PRICES, AGAIN).status_code == 403
    assert not ModelPrice.objects.exists()


def test_an_act_that_does_not_exist_is_refused(keeper: Client) -> None:
    assert keeper.post(PRICES, {"act": "delete"}).status_code == 400
