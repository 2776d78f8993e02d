"""A range as columns of a chart: what each was made of, and what the equal time before cost; years by weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from governance.days import ONE_DAY, DayRange
from governance.queries.records import DayRuns
from governance.queries.runs import run_trend
from governance.queries.selection import Selection
from governance.queries.spend import known_cost
from governance.queries.sums import DAY, Key, Sums, total, usage_sums
from governance.reading import one_view

PLAIN = ("requests", "input_tokens", "output_tokens", "cost_nanos", "unpriced_requests")
WEEK = 7
MOST_COLUMNS = 92  # more days than these are told by weeks
TOP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendColumn:
    """A day, or the days of a week that are in the range."""

    first: date
    last: date
    requests: int
    total_tokens: int
    cost_nanos: int | None
    unpriced_requests: int
    layers: Sequence[int]  # known costs of the dearest models in their order, then of all others
    before_nanos: int  # of the column as far from the start of the equal range before


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendTrend:
    models: Sequence[str]  # the dearest, dearest first
    others: bool  # whether there are more, which make the last layer
    columns: Sequence[SpendColumn]


def spend_trend(selection: Selection, top: int = TOP) -> SpendTrend:
    """The range by day and model beside the range before, in four statements at most."""
    with one_view():
        now = usage_sums(selection, (DAY, "model_id"), PLAIN)
        before = usage_sums(selection.during(selection.range.before()), (DAY,), PLAIN)
    models = _dearest(now)
    mine, past = by_column(selection.range, now), by_column(selection.range.before(), before)
    return SpendTrend(
        models=models[:top],
        others=len(models) > top,
        columns=[
            _column(days, mine[number], models[:top], total(past[number].values(), PLAIN)["cost_nanos"])
            for number, days in enumerate(columns_of(selection.range))
        ],
    )


def columns_of(days: DayRange) -> list[DayRange]:
    """The days one by one, or by sevens from the first where they are many; the last may be shorter."""
    step = 1 if len(days) <= MOST_COLUMNS else WEEK
    starts = [days.first + number * ONE_DAY for number in range(0, len(days), step)]
    return [
        DayRange(first=first, last=min(days.last, first + (step - 1) * ONE_DAY), zone=days.zone) for first in starts
    ]


def by_column(days: DayRange, sums: Mapping[Key, Sums]) -> list[dict[Key, Sums]]:
    """Sums by day and more as those of each column by the rest of their keys."""
    step = 1 if len(days) <= MOST_COLUMNS else WEEK
    columns: list[dict[Key, list[Sums]]] = [{} for _ in columns_of(days)]
    for (day, *rest), each in sums.items():
        columns[(day - days.first).days // step].setdefault(tuple(rest), []).append(each)
    return [{key: total(each, PLAIN) for key, each in column.items()} for column in columns]


def _dearest(sums: Mapping[Key, Sums]) -> list[str]:
    costs: dict[str, int] = {}
    for (_, model), each in sums.items():
        costs[model] = costs.get(model, 0) + each["cost_nanos"]
    return sorted(costs, key=lambda model: (-costs[model], model))


def _column(days: DayRange, sums: Mapping[Key, Sums], models: Sequence[str], before_nanos: int) -> SpendColumn:
    whole = total(sums.values(), PLAIN)
    layers = [sums[(model,)]["cost_nanos"] if (model,) in sums else 0 for model in models]
    return SpendColumn(
        first=days.first,
        last=days.last,
        requests=whole["requests"],
        total_tokens=whole["input_tokens"] + whole["output_tokens"],
        cost_nanos=known_cost(whole),
        unpriced_requests=whole["unpriced_requests"],
        layers=[*layers, whole["cost_nanos"] - sum(layers)],
        before_nanos=before_nanos,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunColumn:
    first: date
    last: date
    runs: int
    completed: int
    failed: int
    cancelled: int
    open: int


def run_columns(selection: Selection) -> list[RunColumn]:
    """The runs of a range by the same columns as its spend."""
    days = {one.day: one for one in run_trend(selection)}
    return [_run_column(stretch, [days[day] for day in stretch.days()]) for stretch in columns_of(selection.range)]


def _run_column(stretch: DayRange, days: Sequence[DayRuns]) -> RunColumn:
    runs, completed, failed, cancelled = (
        sum(getattr(day, name) for day in days) for name in ("runs", "completed", "failed", "cancelled")
    )
    return RunColumn(
        first=stretch.first,
        last=stretch.last,
        runs=runs,
        completed=completed,
        failed=failed,
        cancelled=cancelled,
        open=runs - completed - failed - cancelled,
    )
