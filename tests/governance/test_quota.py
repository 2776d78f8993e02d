"""Limits: what is used of them, what is reserved, and where a turn meets them (spec 08 §4)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connections
from django.test import override_settings
from django.utils import timezone

from agent.conf import setting_problems
from agent.domain.actor import Actor
from agent.domain.ledger import UsageTotals
from agent.domain.quota import Filled, Window, report, windows_for
from agent.testing import InMemoryQuota
from governance.days import start_of, today
from governance.quota import LedgerQuota
from governance.rollups import build
from tests.governance import rows

ANA = Actor("ana", roles=("sales",), tenant_ref="north")
DOLLAR = 10**9


def quota(**limits: Any) -> Any:
    return override_settings(AGENT={"QUOTA": limits})


def window(told: Mapping[str, Any], place: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = told["windows"][place]
    return found


# ---- which limits, and how full they are ----------------------------------------------------------------------------


def test_the_most_generous_of_somebodys_roles_wins() -> None:
    limits: dict[str, Any] = {
        "day": {"tokens": 10},
        "by_role": {
            "sales": {"day": {"tokens": 500}, "month": {"usd": 1}},
            "lead": {"day": {"tokens": 900, "warn_at": 0.5}, "month": {"usd": 5}},
        },
    }
    assert [one.tokens for one in windows_for(limits, Actor("x"))] == [10]
    both = windows_for(limits, Actor("x", roles=("sales", "lead")))
    assert [(one.period, one.tokens, one.nanos) for one in both] == [("day", 900, None), ("month", None, 5 * DOLLAR)]


def test_a_role_without_a_window_has_no_limit_in_it() -> None:
    limits: dict[str, Any] = {"day": {"usd": 1}, "by_role": {"sales": {"month": {"usd": 9}}}}
    assert [one.period for one in windows_for(limits, ANA)] == ["month"]


def filled(used: int, *, limit: int = 100, open_runs: int = 0, **options: Any) -> Filled:
    return Filled(
        window=Window(period=options.pop("period", "day"), tokens=limit, **options),
        used=UsageTotals(requests=1, used_tokens=used),
        open_runs=open_runs,
        resets_at=datetime(2026, 6, 2, tzinfo=UTC),
    )


def test_the_first_exhausted_window_blocks_and_the_fullest_warns() -> None:
    assert report([filled(100, period="month"), filled(100)])["blocked"]["period"] == "day"
    told = report([filled(80, warn_at=0.5), filled(90, period="month", warn_at=0.8)])
    assert (told["warning"]["period"], told["warning"]["ratio"]) == ("month", 0.9)
    assert "warning" not in report([filled(100), filled(90, warn_at=0.8)])
    assert "blocked" not in report([filled(99)])
    assert "blocked" in report([filled(0, limit=0)])
    assert "blocked" not in report([filled(10**18 - 1, limit=10**18)])


def test_what_is_reserved_is_told_apart_from_what_is_spent() -> None:
    """B109: the refusal says which it is."""
    told = report([filled(60, open_runs=4, reserve_tokens=10)])
    assert (window(told)["usedTokens"], window(told)["reservedTokens"]) == (60, 40)
    assert "reserved" in told["blocked"]["reason"]
    assert "used up" in report([filled(100, open_runs=1, reserve_tokens=10)])["blocked"]["reason"]


@pytest.mark.parametrize(
    "limits",
    [
        {"week": {"tokens": 1}},
        {"day": {}},
        {"day": {"tokens": -1}},
        {"day": {"tokens": True}},
        {"day": {"usd": float("nan")}},
        {"day": {"usd": 1, "warn_at": 2}},
        {"day": {"usd": 1, "tokens": 1, "reserve": 5}},
        {"by_role": {"x": {"usd": 1}}},
        {"tenant": {"day": {"dollars": 1}}},
    ],
)
def test_a_limit_that_limits_nothing_is_refused(limits: dict[str, Any]) -> None:
    with quota(**limits):
        assert any("QUOTA" in problem for problem in setting_problems())


# ---- from the ledger ------------------------------------------------------------------------------------------------


def test_a_month_is_the_sum_of_its_days_with_and_without_rollups(db: None) -> None:
    zone = UTC
    day = today(zone)
    first = start_of(day.replace(day=1), zone)
    rows.entry(first - timedelta(microseconds=1))
    rows.entry(first, estimated_cost_nanos=7)
    rows.entry(first, estimated_cost_nanos=None)
    rows.entry(timezone.now(), reported_cost_nanos=3)
    rows.entry(first, actor_ref="bo", tenant_ref="north", estimated_cost_nanos=90)
    with quota(month={"usd": 1, "tokens": 1000}, tenant={"month": {"usd": 1}}):
        for _ in range(2):
            told = LedgerQuota().report(ANA)
            assert window(told)["usedTokens"] == 330
            assert window(told)["usedUsd"] == 10 / DOLLAR
            assert window(told)["unpricedRequests"] == 1
            assert (window(told, 1)["whose"], window(told, 1)["usedUsd"]) == ("tenant", 90 / DOLLAR)
            for number in range((day - day.replace(day=1)).days):
                build("usage", day.replace(day=1) + timedelta(days=number))


def test_a_day_is_one_of_the_reporting_zone(db: None) -> None:
    with override_settings(AGENT={"QUOTA": {"day": {"tokens": 10_000}}, "REPORT_TIME_ZONE": "Pacific/Auckland"}):
        told = LedgerQuota().report(ANA)
    resets = datetime.fromisoformat(window(told)["resetsAt"])
    assert resets > timezone.now()
    assert resets - timezone.now() <= timedelta(hours=25)
    assert resets.minute == 0


def test_open_runs_reserve_and_closed_ones_do_not(db: None) -> None:
    for number in range(3):
        rows.run(id=f"run-{number}", status="running", settled_at=None)
    rows.run(status="completed")
    rows.run(status="running", settled_at=None, trigger="delegate")
    with quota(day={"usd": 1, "reserve": 0.3}):
        assert window(LedgerQuota().report(ANA))["reservedUsd"] == 0.9
        assert "blocked" not in LedgerQuota().report(ANA)
        rows.run(status="waiting", settled_at=None)
        assert LedgerQuota().report(ANA)["blocked"]["period"] == "day"
        assert "blocked" not in LedgerQuota().report_within(ANA, "run-1")


def test_the_quota_without_a_database_agrees(db: None) -> None:
    rows.entry(timezone.now())
    with quota(day={"tokens": 200, "warn_at": 0.5}, month={"usd": 2}):
        assert InMemoryQuota().report(ANA) == LedgerQuota().report(ANA)


def test_turns_at_once_overshoot_by_no_more_than_the_calls_in_flight(transactional_db: None) -> None:
    """B109: fifty at once, of which each may cost a tenth of what is left."""
    admitted: list[str] = []
    lock = threading.Lock()

    def admit(number: int) -> None:
        try:
            with lock:  # what is shown is the count of open runs; two admissions at one instant are both in flight
                if "blocked" not in LedgerQuota().report(ANA):
                    rows.run(timezone.now(), id=f"run-{number}", status="running", settled_at=None)
                    admitted.append(f"run-{number}")
        finally:
            connections.close_all()

    with quota(day={"usd": Decimal("1.00"), "reserve": Decimal("0.10")}):
        threads = [threading.Thread(target=admit, args=(number,)) for number in range(50)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(admitted) == 10
