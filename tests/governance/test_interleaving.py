"""Figures hold while rows are written, days built and prices changed at the same time (spec 08 §6)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from django.db import connections

from agent.models import UsageEntry
from governance.days import DayRange
from governance.queries import Selection, spend_overview
from governance.repricing import Repricing, reprice
from governance.rollups import build, check
from tests.governance import rows

DAYS = [date(2026, 6, 13) + timedelta(days=number) for number in range(3)]
RANGE = DayRange(first=DAYS[0], last=DAYS[-1], zone=UTC)
ROUNDS = 12


def at(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


def write(number: int) -> None:
    rows.entry(datetime.now(UTC), estimated_cost_nanos=number)
    rows.entry(at(DAYS[number % 3]), model_id="later", estimated_cost_nanos=None)


def change(number: int) -> None:
    reprice(Repricing(by="ana", reason="a price came later"))


def roll(number: int) -> None:
    build("usage", DAYS[number % 3])


def read(number: int) -> None:
    seen = spend_overview(Selection.of(RANGE))
    for cut in (seen.by_model, seen.by_actor, seen.by_agent, seen.by_purpose, seen.by_tenant, seen.trend):
        assert sum(row.cost_nanos or 0 for row in cut) == (seen.summary.cost_nanos or 0)
    # A late row is 120,000 nanos once it is priced, an early one 1,000: nothing is half there.
    assert (seen.summary.cost_nanos or 0) % 120_000 == 3_000


def test_every_read_is_whole_beside_writers_builders_and_repricing(transactional_db: None) -> None:
    rows.price("later", since=datetime(2026, 1, 1, tzinfo=UTC))
    for day in DAYS:
        rows.entry(at(day))
        rows.entry(at(day), model_id="later", estimated_cost_nanos=None)
        build("usage", day)
    failures: list[BaseException] = []

    def repeated(act: Callable[[int], None]) -> None:
        try:
            for number in range(ROUNDS):
                act(number)
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=repeated, args=(act,)) for act in (write, change, roll, read, read)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures
    reprice(Repricing(by="ana", reason="the last ones"))
    for day in DAYS:
        build("usage", day)
    assert not list(check())
    inside = UsageEntry.objects.filter(created_at__gte=RANGE.span.start, created_at__lt=RANGE.span.end)
    assert spend_overview(Selection.of(RANGE)).summary.cost_nanos == rows.cost(inside) == 3_000 + 120_000 * (3 + ROUNDS)
