"""Percentiles of durations: exact ones of rows, within 1 % as soon as a rollup takes part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from governance.histograms import Histogram, approximate, histogram, merged, nearest_rank
from governance.models import RollupDay
from governance.queries.parts import Parts
from governance.queries.selection import Selection
from governance.rollups.marks import database


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """What rollups say (None: no rollup takes part), and what was read of rows."""

    rolled: Histogram | None
    exact: Sequence[int]

    def at(self, share: float) -> int | None:
        if self.rolled is None:
            return nearest_rank(sorted(self.exact), share)
        return approximate(merged([self.rolled, histogram(self.exact)]), share)


def reads_whole_days(selection: Selection) -> bool:
    """Whether the histograms that days keep of all tenants and agents together answer this."""
    return selection.tenants is None and not selection.has("tenant_ref", "agent")


def day_histograms(kind: str, some: Parts) -> dict[str, Histogram]:
    """The histograms of whole days, merged by name: a year is read as 365 rows, not as all their buckets."""
    days = RollupDay.objects.using(database()).filter(some.rolled_q(), kind=kind)
    found: dict[str, list[Histogram]] = {}
    for each in days.values_list("histograms", flat=True):
        for name, counts in (each or {}).items():
            found.setdefault(name, []).append(counts)
    return {name: merged(each) for name, each in found.items()}
