"""A figure beside the same figure of the equally long period before (CONSOLE: compared, not bare)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from agent.domain.pricing import rates_for
from agent.store import get_store
from governance.queries.selection import Selection
from governance.queries.sums import CUBE, usage_sums
from governance.reading import one_view

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[T]):
    """A row of now and of before (None: there is none), and by how much each of its numbers moved."""

    now: T | None
    before: T | None
    differences: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What a model read from its cache, and about how much that saved at the price in force at the range's end."""

    model_id: str
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    saved_nanos: int | None


def compare(query: Callable[[Selection], T], selection: Selection) -> Change[T]:
    """One row of a query over the range and over the one before it, in one view."""
    with one_view():
        now, before = query(selection), query(selection.during(selection.range.before()))
    return Change(now=now, before=before, differences=_differences(now, before))


def moved(query: Callable[[Selection], Iterable[T]], selection: Selection, key: str) -> list[Change[T]]:
    """The rows of a query by key, those whose cost moved most first; what is gone or new stands beside nothing."""
    with one_view():
        now = {getattr(row, key): row for row in query(selection)}
        before = {getattr(row, key): row for row in query(selection.during(selection.range.before()))}
    names = [*now, *(name for name in before if name not in now)]
    changes = [
        Change(now=now.get(name), before=before.get(name), differences=_differences(now.get(name), before.get(name)))
        for name in names
    ]
    return sorted(changes, key=lambda change: -abs(change.differences.get("cost_nanos") or 0))


def cache_savings(selection: Selection) -> list[Saving]:
    """By model, the largest saving first."""
    measures = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    with one_view():
        found = usage_sums(selection, CUBE[:1], measures)
    rows = [_saving(key[0], sums, selection) for key, sums in found.items() if sums["cache_read_tokens"]]
    return sorted(rows, key=lambda row: (-(row.saved_nanos or 0), row.model_id))


def _saving(model_id: str, sums: Mapping[str, int], selection: Selection) -> Saving:
    price = get_store().price_in_force(model_id, selection.range.span.end)
    saved = None
    if price is not None:
        rates = rates_for(price, 0)
        less = sums["cache_read_tokens"] * (rates.input - rates.cache_read)
        more = sums["cache_write_tokens"] * (rates.cache_write - rates.input)
        saved = (less - more) // MILLION
    return Saving(model_id=model_id, saved_nanos=saved, **sums)


def _differences(now: Any, before: Any) -> dict[str, float | None]:  # noqa: ANN401  (rows of any query)
    """Of every number of a row; None where one of both is unknown. A row that is not there counts as nothing."""
    told = now if now is not None else before
    found: dict[str, float | None] = {}
    for each in fields(told):
        mine, theirs = (None if row is None else getattr(row, each.name) for row in (now, before))
        numbers: Sequence[Any] = [value for value in (mine, theirs) if value is not None]
        if numbers and all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers):
            unknown = (now is not None and mine is None) or (before is not None and theirs is None)
            found[each.name] = None if unknown else (mine or 0) - (theirs or 0)
    return found
