"""Pages of long tables: by number up to a bound, by key without one; totals that stop counting (spec 08 §7)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from agent.errors import Invalid, NotAllowed
from governance.days import DayRange, parse_day
from governance.queries.selection import Selection, equals, value_of
from governance.queries.values import Page

R = TypeVar("R")

PAGE_DEFAULT, PAGE_MOST = 25, 200
LATEST_DEFAULT, LATEST_MOST = 50, 200
COUNTED = 10_000
DAYS = ("fromDay", "toDay")

Where = Mapping[str, str]
Field = str | Callable[[str], Q]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Which page: a number from 1, or what `next_cursor` of the page before said; the cursor wins."""

    page: int = 1
    limit: int = PAGE_DEFAULT
    cursor: str | None = None

    @property
    def size(self) -> int:
        return max(1, min(self.limit, PAGE_MOST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Columns that tell every row of a table apart, the last one an id; all of them one way."""

    columns: tuple[str, ...]
    descending: bool = True

    @property
    def clauses(self) -> list[str]:
        return [f"-{name}" if self.descending else name for name in self.columns]

    def after(self, keys: Sequence[object]) -> Q:
        """The rows behind this one. The first column bounds them by itself, for the sake of its index."""
        beyond = "lt" if self.descending else "gt"
        found, same = Q(pk__in=[]), Q()
        for name, key in zip(self.columns, keys, strict=True):
            found |= same & Q(**{f"{name}__{beyond}": key})
            same &= Q(**{name: key})
        return Q(**{f"{self.columns[0]}__{beyond}e": keys[0]}) & found


def page_of(
    rows: QuerySet[Any, Any], order: Order, ask: Ask, made: Callable[[Sequence[Mapping[str, Any]]], Sequence[R]]
) -> Page[R]:
    """One page; `made` turns its rows, as dictionaries, into values, all at once."""
    size = ask.size
    ordered = rows.order_by(*order.clauses)
    if ask.cursor is not None:
        page, found = 1, list(ordered.filter(order.after(_keys(ask.cursor, order)))[: size + 1])
    else:
        page, first = ask.page, (ask.page - 1) * size
        if first + size > COUNTED:
            raise Invalid("Pages by number end at row 10,000: go on with the cursor of a page.", code="use_cursor")
        found = list(ordered[first : first + size + 1])
    shown = found[:size]
    counted = rows.order_by()[: COUNTED + 1].count()
    return Page(
        rows=made(shown),
        total=min(counted, COUNTED),
        page=page,
        page_size=size,
        next_cursor=_cursor(shown[-1], order) if len(found) > size else None,
        total_capped=True if counted > COUNTED else None,
    )


def narrowed(selection: Selection, where: Where, fields: Mapping[str, Field]) -> tuple[Selection, Q]:
    """A page's own filters: its days in place of the range's, the others as conditions.

    `Invalid` names one that does not exist.
    """
    for name in where:
        if name not in fields and name not in DAYS:
            raise Invalid.field(f"where[{name}]", f"no filter; there are {', '.join([*fields, *DAYS])}")
    given = {name: parse_day(f"where[{name}]", where[name]) for name in DAYS if name in where}
    if given:
        first, last = given.get("fromDay", selection.range.first), given.get("toDay", selection.range.last)
        selection = selection.during(DayRange.of(min(first, last) if "fromDay" not in given else first, last))
    found = Q()
    for name, field in fields.items():
        if name not in where:
            continue
        if name == "title" and not selection.text:
            raise NotAllowed("Titles are words of people: looking for them needs governance.view_conversations.")
        if callable(field):
            found &= field(where[name])
        else:
            found &= equals(field, value_of(f"where[{name}]", where[name]))
    return selection, found


def pages(query: Callable[[Ask], Page[R]]) -> Any:  # noqa: ANN401  (a generator of rows)
    """Every row of a table, a page at a time."""
    cursor: str | None = None
    while True:
        page = query(Ask(limit=PAGE_MOST, cursor=cursor))
        yield from page.rows
        cursor = page.next_cursor
        if cursor is None:
            return


def _cursor(row: Mapping[str, Any], order: Order) -> str:
    keys = [value.isoformat() if isinstance(value := row[name], datetime) else value for name in order.columns]
    return base64.urlsafe_b64encode(json.dumps(keys).encode()).decode().rstrip("=")


def _keys(cursor: str, order: Order) -> list[object]:
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if not isinstance(found, list) or len(found) != len(order.columns):
            raise ValueError
        return [_key(name, value) for name, value in zip(order.columns, found, strict=True)]
    except (ValueError, TypeError, binascii.Error, ValidationError, RecursionError):
        raise Invalid.field("cursor", "the nextCursor of a page of this table") from None


def _key(name: str, value: object) -> object:
    """A key of a cursor: an instant where the column is one."""
    if name.endswith("_at"):
        at = datetime.fromisoformat(str(value))
        if at.tzinfo is None:
            raise ValueError
        return at
    if not isinstance(value, int | str) or isinstance(value, bool) or (isinstance(value, int) and abs(value) >> 63):
        raise ValueError
    return value
