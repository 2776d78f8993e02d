"""Figures are the same with rollups, without them, and half way between (spec 08 §6)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from agent.models import Run, UsageEntry
from governance.days import DayRange, start_of
from governance.models import RollupDay, UsageRollup
from governance.queries.selection import Selection
from governance.queries.spend import (
    spend_by_actor,
    spend_by_agent,
    spend_by_model,
    spend_by_purpose,
    spend_by_tenant,
    spend_by_thread,
    spend_overview,
    spend_summary,
    usage_trend,
)
from governance.repricing import Repricing, reprice
from governance.rollups import build, check, mark_dirty, rebuild, roll_up
from governance.sample import Sample, make
from tests.governance import rows

LAST = date(2026, 6, 20)
NOW = datetime(2026, 6, 20, 15, 0, tzinfo=UTC)
RANGE = DayRange(first=date(2026, 5, 20), last=LAST, zone=UTC)
SELECTIONS: tuple[dict[str, str], ...] = (
    {},
    {"tenant_ref": "north"},
    {"tenant_ref": "(none)"},
    {"agent": "shop"},
    {"model": "preview-5"},
    {"actor": "person-3"},
    {"purpose": "chat", "agent": "billing"},
)


def selection(filters: dict[str, str], days: DayRange = RANGE) -> Selection:
    return Selection.of(days, filters)


def picture(asked: Selection) -> tuple[object, ...]:
    return (
        spend_summary(asked),
        spend_overview(asked),
        spend_by_model(asked),
        spend_by_actor(asked),
        spend_by_agent(asked),
        spend_by_purpose(asked),
        spend_by_tenant(asked),
        spend_by_thread(asked, 25),
        usage_trend(asked),
    )


@pytest.fixture
def sample(db: None) -> None:
    make(Sample(rows=600, seed=7, days=45, last=LAST, until=NOW))


def pictures() -> list[tuple[object, ...]]:
    return [picture(selection(filters)) for filters in SELECTIONS]


def test_figures_are_the_same_with_and_without_rollups(sample: None) -> None:
    before = pictures()
    for _ in rebuild():
        pass
    assert UsageRollup.objects.exists()
    assert pictures() == before
    mark_dirty("usage", [date(2026, 5, 25), date(2026, 6, 3), date(2026, 6, 4)])
    RollupDay.objects.filter(day__in=[date(2026, 6, 10), date(2026, 6, 11)]).delete()
    assert pictures() == before


def test_every_cut_has_the_same_total_to_the_nano(sample: None) -> None:
    for day in (date(2026, 6, 1), date(2026, 6, 2), date(2026, 6, 7)):
        build("usage", day)
    seen = spend_overview(selection({}))
    entries = UsageEntry.objects.filter(created_at__gte=RANGE.span.start, created_at__lt=RANGE.span.end)
    wanted = rows.cost(entries)
    assert wanted
    for cut in (seen.by_model, seen.by_actor, seen.by_agent, seen.by_purpose, seen.by_tenant, seen.trend):
        assert sum(row.cost_nanos or 0 for row in cut) == wanted
    assert seen.summary.cost_nanos == wanted
    assert seen.summary.reported_cost_nanos + seen.summary.estimated_cost_nanos == wanted
    assert seen.summary.requests == entries.count()
    assert seen.summary.threads == entries.values("thread_id").distinct().count()
    assert seen.summary.actors == entries.values("actor_ref").distinct().count()
    assert sum(row.thread_count for row in seen.by_actor) == seen.summary.threads


def test_what_is_not_priced_is_never_nothing(db: None) -> None:
    """B97: a known 0 is 0, an unknown cost is none, no rows are 0."""
    rows.entry(model_id="free", estimated_cost_nanos=0)
    rows.entry(model_id="unknown", estimated_cost_nanos=None)
    days = DayRange(first=date(2026, 6, 15), last=date(2026, 6, 15), zone=UTC)
    for _ in range(2):
        costs = {row.model_id: row.cost_nanos for row in spend_by_model(selection({}, days))}
        assert costs == {"free": 0, "unknown": None}
        assert spend_summary(selection({"model": "unknown"}, days)).cost_nanos is None
        assert spend_summary(selection({"model": "nobody"}, days)).cost_nanos == 0
        assert spend_summary(selection({}, days)).unpriced_tokens == 110
        build("usage", date(2026, 6, 15))


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/St_Johns", "America/Havana", "UTC", "Africa/Cairo"])
def test_days_begin_at_the_midnight_of_the_reporting_zone(db: None, zone: str) -> None:
    """B107: days of 23, 24 and 25 hours; the last microsecond of a day is its own."""
    with override_settings(AGENT={"REPORT_TIME_ZONE": zone}):
        days = DayRange.of(date(2025, 1, 1), date(2025, 12, 31))
        hours = {(start_of(day + timedelta(days=1), days.zone) - start_of(day, days.zone)) for day in days.days()}
        assert len(hours) == (1 if zone == "UTC" else 3)
        odd = [
            day
            for day in days.days()
            if start_of(day + timedelta(days=1), days.zone) - start_of(day, days.zone) != timedelta(hours=24)
        ]
        for day in odd or [date(2025, 3, 1)]:
            start, end = start_of(day, days.zone), start_of(day + timedelta(days=1), days.zone)
            for at in (start - timedelta(microseconds=1), start, end - timedelta(microseconds=1), end):
                rows.entry(at)
            one = DayRange(first=day, last=day, zone=days.zone)
            assert spend_summary(selection({}, one)).requests == 2
            build("usage", day)
            assert spend_summary(selection({}, one)).requests == 2
            UsageEntry.objects.all().delete()
            mark_dirty("usage", [day])


def test_the_trend_tells_apart_the_days_of_a_range_that_nothing_is_built_of(sample: None) -> None:
    wanted: dict[date, int] = {}
    for each in UsageEntry.objects.all():
        day = each.created_at.date()
        wanted[day] = wanted.get(day, 0) + (each.cost_nanos or 0)
    trend = usage_trend(selection({}))
    assert [row.day for row in trend] == list(RANGE.days())
    assert {row.day: row.cost_nanos or 0 for row in trend} == {day: wanted.get(day, 0) for day in RANGE.days()}


def test_only_days_that_ended_an_hour_ago_are_built(db: None) -> None:
    rows.entry()
    day = date(2026, 6, 15)
    assert not build("usage", day, now=datetime(2026, 6, 16, 0, 59, tzinfo=UTC))
    assert not RollupDay.objects.exists()
    assert build("usage", day, now=datetime(2026, 6, 16, 1, 0, tzinfo=UTC))


def test_the_job_builds_newest_first_and_thirty_days_a_turn(sample: None) -> None:
    roll_up(now=NOW)
    built = set(RollupDay.objects.filter(kind="usage").values_list("day", flat=True))
    assert len(built) == 30
    assert max(built) == date(2026, 6, 19)
    while roll_up(now=NOW):
        pass
    assert RollupDay.objects.filter(kind="tool", state="clean").count() == 44


def test_a_row_that_was_committed_late_is_found(sample: None) -> None:
    while roll_up(now=NOW):
        pass
    asked = selection({})
    before = spend_summary(asked).requests
    rows.entry(datetime(2026, 6, 19, 23, 59, tzinfo=UTC))
    roll_up(now=NOW)
    assert spend_summary(asked).requests == before + 1


def test_rollups_of_another_zone_are_not_read(db: None) -> None:
    rows.entry(datetime(2026, 6, 14, 20, 0, tzinfo=UTC))
    build("usage", date(2026, 6, 15))
    build("usage", date(2026, 6, 14))
    with override_settings(AGENT={"REPORT_TIME_ZONE": "Pacific/Auckland"}):
        asked = Selection.of(DayRange.of(date(2026, 6, 15), date(2026, 6, 15)))
        assert spend_summary(asked).requests == 1
        text = StringIO()
        call_command("check", "--database", "default", stderr=text)
        assert "governance.W002" in text.getvalue()


def test_the_check_finds_a_nano_and_repairs_it(sample: None) -> None:
    for _ in rebuild():
        pass
    assert not list(check())
    bucket = UsageRollup.objects.filter(cost_nanos__gt=0).first()
    assert bucket is not None
    bucket.cost_nanos += 1
    bucket.save()
    (found,) = check()
    assert (found.day, found.field, found.rollup) == (bucket.day, "cost_nanos", found.ledger + 1)
    with pytest.raises(CommandError, match="1 days differ"):
        call_command("governance_check_rollups", stdout=StringIO())
    call_command("governance_check_rollups", "--repair", stdout=StringIO())
    assert not list(check())


def test_repricing_is_seen_at_once_and_marks_its_days(sample: None) -> None:
    for _ in rebuild():
        pass
    asked = selection({"model": "preview-5"}, DayRange(first=date(2026, 5, 7), last=LAST, zone=UTC))
    assert spend_summary(asked).cost_nanos is None
    rows.price("preview-5")
    order = Repricing(by="ana", reason="the vendor told us")
    foreseen = reprice(order, dry_run=True)
    assert spend_summary(asked).cost_nanos is None
    assert reprice(order) == foreseen
    assert spend_summary(asked).cost_nanos == foreseen.nanos_after > 0
    assert RollupDay.objects.filter(kind="usage", state="dirty").exists()
    while roll_up(now=NOW):
        pass
    assert not RollupDay.objects.filter(state="dirty").exists()
    assert spend_summary(asked).cost_nanos == foreseen.nanos_after
    assert not list(check())


@pytest.fixture
def late_run(db: None) -> Run:
    return rows.run(status="running", settled_at=None, duration_ms=None)


def test_a_run_that_settles_late_moves_into_its_days_rollup(late_run: Run) -> None:
    day = date(2026, 6, 15)
    build("run", day, now=NOW - timedelta(hours=2))
    values: dict[str, Any] = {"status": "completed", "settled_at": NOW - timedelta(hours=1), "duration_ms": 10}
    Run.objects.filter(pk=late_run.pk).update(**values)
    assert roll_up(now=NOW)
    mark = RollupDay.objects.get(kind="run", day=day)
    assert (mark.source_rows, mark.cut) == (1, NOW - timedelta(minutes=5))
