"""Rollups against the ledger, day by day: rows, tokens, and cost to the nano."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import QuerySet, Sum

from agent.conf import agent_settings
from agent.models import UsageEntry
from governance.base import created_in
from governance.days import span_of
from governance.measures import MEASURES, THREAD
from governance.models import RollupDay, ThreadUsageRollup, UsageDayRollup, UsageRollup
from governance.reading import one_view
from governance.rollups.marks import CLEAN, USAGE, database, zone_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A day whose rollup is not what the ledger says."""

    day: date
    table: str
    field: str
    rollup: int
    ledger: int


def check(first: date | None = None, last: date | None = None) -> Iterator[Difference]:
    """Compare every built day of the range, oldest first."""
    days = RollupDay.objects.using(database()).filter(kind=USAGE, state=CLEAN, time_zone=zone_name())
    if first is not None:
        days = days.filter(day__gte=first)
    if last is not None:
        days = days.filter(day__lte=last)
    for day in days.order_by("day").values_list("day", flat=True):
        with one_view():
            found = list(_differences(day))
        yield from found


def _differences(day: date) -> Iterator[Difference]:
    mark = RollupDay.objects.using(database()).filter(kind=USAGE, day=day, state=CLEAN).first()
    if mark is None:  # marked since: it is read from the ledger
        return
    entries = created_in(UsageEntry.objects.using(database()), [span_of(day, agent_settings().report_time_zone)])
    ledger = _numbers(entries.aggregate(**{f"sum_{name}": each for name, each in MEASURES.items()}))
    if mark.source_rows != ledger["requests"]:
        yield Difference(
            day=day, table="rollup_day", field="source_rows", rollup=mark.source_rows, ledger=ledger["requests"]
        )
    for model, names in (
        (UsageRollup, tuple(MEASURES)),
        (UsageDayRollup, tuple(MEASURES)),
        (ThreadUsageRollup, THREAD),
    ):
        rows: QuerySet[Any] = model._default_manager.using(database()).filter(day=day)
        sums = _numbers(rows.aggregate(**{f"sum_{name}": Sum(name) for name in names}))
        for name in names:
            if sums[name] != ledger[name]:
                yield Difference(
                    day=day, table=model._meta.db_table, field=name, rollup=sums[name], ledger=ledger[name]
                )


def _numbers(found: Mapping[str, Any]) -> dict[str, int]:
    return {name.removeprefix("sum_"): int(value or 0) for name, value in found.items()}
