"""What a range cost beside the equally long one before it: the whole, its parts, and what moved it."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from agent.models import UsageEntry
from governance.base import database
from governance.days import today
from governance.labels import labels
from governance.queries.selection import Selection
from governance.queries.spend import known_cost
from governance.queries.sums import CUBE, Key, Sums, total, usage_sums
from governance.reading import one_view

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
class Difference:
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
    cost: Difference
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

    requests: Difference
    tokens: Difference
    cost: Difference
    cost_nanos: int | None
    unpriced_requests: int
    unpriced_tokens: int
    cache_read_of_input: Fraction | None
    moved: Sequence[Mover]

    @property
    def has_before(self) -> bool:
        return self.requests.before > 0


def _both(selection: Selection, by: Sequence[str]) -> tuple[dict[Key, Sums], dict[Key, Sums]]:
    """The sums of the range and of the one before, of one moment."""
    with one_view():
        before = selection.during(selection.range.before())
        return usage_sums(selection, by, MEASURED), usage_sums(before, by, MEASURED)


def spend_change(selection: Selection) -> SpendChange:
    """The whole range against the one before, and what moved it."""
    cubes = _both(selection, CUBE)
    now, before = (total(cube.values(), MEASURED) for cube in cubes)
    return SpendChange(
        requests=_change(now, before, "requests"),
        tokens=Difference(now=_tokens(now), before=_tokens(before)),
        cost=_change(now, before, "cost_nanos"),
        cost_nanos=known_cost(now),
        unpriced_requests=now["unpriced_requests"],
        unpriced_tokens=now["unpriced_tokens"],
        cache_read_of_input=Fraction(now["cache_read_tokens"], now["input_tokens"]) if now["input_tokens"] else None,
        moved=_moved(*cubes) if before["requests"] else [],
    )


def spend_shares(selection: Selection, dimension: str) -> list[Share]:
    """The range divided by one dimension of the ledger, dearest first, each against its earlier self."""
    now, before = _both(selection, (dimension,))
    largest = max((each["cost_nanos"] for each in now.values()), default=0)
    ranked = sorted(now.items(), key=lambda item: (-item[1]["cost_nanos"], item[0][0] or ""))
    named = labels([key[0] for key, _ in ranked]) if dimension == ACTOR else {}
    return [_share(key[0], sums, before.get(key), largest, named) for key, sums in ranked]


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


def _moved(now: Mapping[Key, Sums], before: Mapping[Key, Sums]) -> list[Mover]:
    found = []
    for dimension in MOVERS:
        place = CUBE.index(dimension)
        costs: dict[str | None, int] = {}
        for sign, cube in ((1, now), (-1, before)):
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
        cost=Difference(now=sums["cost_nanos"], before=before["cost_nanos"] if before else 0),
        per_request_nanos=round(Fraction(sums["cost_nanos"], priced)) if priced else None,
        of_largest=round(100 * sums["cost_nanos"] / largest) if largest > 0 else 0,
    )


def _change(now: Sums, before: Sums, name: str) -> Difference:
    return Difference(now=now[name], before=before[name])


def _tokens(sums: Sums) -> int:
    return sums["input_tokens"] + sums["output_tokens"]
