"""A range beside the equally long one before it: the same query twice, and the differences; a page only prints."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Generic, TypeVar

from agent.models import UsageEntry
from governance.base import database
from governance.days import today
from governance.labels import labels
from governance.queries.selection import Selection
from governance.queries.spend import CUBE, known_cost
from governance.queries.sums import Key, Sums, total, usage_sums
from governance.reading import one_view

R = TypeVar("R")
MEASURED = (
    "requests",
    "input_tokens",
    "output_tokens",
    "cache_write_tokens",
    "cache_read_tokens",
    "cost_nanos",
    "unpriced_requests",
    "unpriced_tokens",
)
MOVED = 4  # of what moved most
ACTOR = "actor_ref"
MOVERS = ("model_id", "agent_name", "tenant_ref")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Generic[R]):
    now: R
    before: R


def compare(query: Callable[[Selection], R], selection: Selection) -> Compared[R]:
    """What a query answers for the range and for the one before, of one moment."""
    with one_view():
        return Compared(now=query(selection), before=query(selection.during(selection.range.before())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A number against its earlier one; no ratio where there was nothing to compare with."""

    now: int
    before: int

    @property
    def difference(self) -> int:
        return self.now - self.before

    @property
    def ratio(self) -> Fraction | None:
        return Fraction(self.difference, self.before) if self.before > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One of the parts that a sum is divided into; `cost` compares the known costs."""

    key: str | None
    label: str | None
    requests: int
    total_tokens: int
    cost_nanos: int | None
    unpriced_requests: int
    cost: Change
    per_request_nanos: int | None  # of the requests whose cost is known
    of_largest: int  # 0 to 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Mover:
    """A part whose cost changed more than that of others."""

    dimension: str
    key: str | None
    difference: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendChange:
    """The head of the spend screen."""

    requests: Change
    tokens: Change
    cost: Change
    cost_nanos: int | None
    unpriced_requests: int
    unpriced_tokens: int
    cache_read_of_input: Fraction | None
    moved: Sequence[Mover]

    @property
    def has_before(self) -> bool:
        return self.requests.before > 0


def spend_change(selection: Selection) -> SpendChange:
    """The whole range against the one before, and what moved it."""
    cubes = compare(lambda each: usage_sums(each, CUBE, MEASURED), selection)
    now, before = (total(cube.values(), MEASURED) for cube in (cubes.now, cubes.before))
    return SpendChange(
        requests=_change(now, before, "requests"),
        tokens=Change(now=_tokens(now), before=_tokens(before)),
        cost=_change(now, before, "cost_nanos"),
        cost_nanos=known_cost(now),
        unpriced_requests=now["unpriced_requests"],
        unpriced_tokens=now["unpriced_tokens"],
        cache_read_of_input=Fraction(now["cache_read_tokens"], now["input_tokens"]) if now["input_tokens"] else None,
        moved=_moved(cubes) if before["requests"] else [],
    )


def spend_shares(selection: Selection, dimension: str) -> list[Share]:
    """The range divided by one dimension of the ledger, dearest first, each against its earlier self."""
    parts = compare(lambda each: usage_sums(each, (dimension,), MEASURED), selection)
    largest = max((each["cost_nanos"] for each in parts.now.values()), default=0)
    ranked = sorted(parts.now.items(), key=lambda item: (-item[1]["cost_nanos"], item[0][0] or ""))
    named = labels([key[0] for key, _ in ranked]) if dimension == ACTOR else {}
    return [_share(key[0], sums, parts.before.get(key), largest, named) for key, sums in ranked]


def month_pace(selection: Selection, cost_nanos: int, now: date) -> int | None:
    """What the month comes to at the pace of its days so far; None where the range is not the month up to today."""
    days = selection.range
    if days.last != now or days.first != now.replace(day=1):
        return None
    in_month = monthrange(now.year, now.month)[1]
    return round(Fraction(cost_nanos * in_month, len(days))) if len(days) < in_month else None


def newest_use(selection: Selection) -> date | None:
    """The last day with a ledger row, whatever the range."""
    rows = UsageEntry.objects.using(database()).filter(selection.q()).order_by("-created_at")
    newest = rows.values_list("created_at", flat=True).first()
    return None if newest is None else today(selection.range.zone, newest)


def _moved(cubes: Compared[dict[Key, Sums]]) -> list[Mover]:
    found = []
    for dimension in MOVERS:
        place = CUBE.index(dimension)
        costs: dict[str | None, int] = {}
        for sign, cube in ((1, cubes.now), (-1, cubes.before)):
            for key, sums in cube.items():
                costs[key[place]] = costs.get(key[place], 0) + sign * sums["cost_nanos"]
        if len(costs) > 1:  # one alone moved as the whole did
            found += [Mover(dimension=dimension, key=key, difference=by) for key, by in costs.items() if by]
    return sorted(found, key=lambda mover: (-abs(mover.difference), mover.dimension, mover.key or ""))[:MOVED]


def _share(key: str | None, sums: Sums, before: Sums | None, largest: int, named: Mapping[str, str]) -> Share:
    priced = sums["requests"] - sums["unpriced_requests"]
    return Share(
        key=key,
        label=named.get(key) if key is not None else None,
        requests=sums["requests"],
        total_tokens=_tokens(sums),
        cost_nanos=known_cost(sums),
        unpriced_requests=sums["unpriced_requests"],
        cost=Change(now=sums["cost_nanos"], before=before["cost_nanos"] if before else 0),
        per_request_nanos=round(Fraction(sums["cost_nanos"], priced)) if priced else None,
        of_largest=round(100 * sums["cost_nanos"] / largest) if largest > 0 else 0,
    )


def _change(now: Sums, before: Sums, name: str) -> Change:
    return Change(now=now[name], before=before[name])


def _tokens(sums: Sums) -> int:
    return sums["input_tokens"] + sums["output_tokens"]
