"""Values of queries as JSON: camelCase, instants in UTC, money as USD with nine places, unknown money as null."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from agent.domain.clock import wire_time
from agent.domain.pricing import usd
from governance.queries.values import Page, Spend

NANOS = "_nanos"
ABSENT = frozenset({"label", "next_cursor", "total_capped", "decidable", "execution"})  # left out, not null
RAW = frozenset({"input", "confirmation", "differences", "tool_calls_by_status"})


@cache
def columns(kind: type) -> tuple[tuple[str, str], ...]:
    """The fields of a row with their names on the wire; of a cut of spend, what it is cut by comes first."""
    names = [each.name for each in fields(kind)]
    if issubclass(kind, Spend) and kind is not Spend:
        own = list(kind.__annotations__)
        names = [*own, *(name for name in names if name not in own)]
    return tuple((name, camel(name)) for name in names)


def camel(name: str) -> str:
    """`cost_nanos` is `costUsd` on the wire."""
    stem = name.removesuffix(NANOS) + "_usd" if name.endswith(NANOS) else name
    first, *rest = stem.split("_")
    return first + "".join(part.capitalize() for part in rest)


def to_json(value: Any, *, without: frozenset[str] = frozenset()) -> Any:  # noqa: ANN401  (any answer of a query)
    """A value for the wire; `without` are fields that the asker may not see."""
    if is_dataclass(value) and not isinstance(value, type):
        return dict(_fields(value, without))
    if isinstance(value, datetime):
        return wire_time(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [to_json(each, without=without) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


def _fields(value: Any, without: frozenset[str]) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    kind: type = type(value)
    for name, shown in columns(kind):
        item = getattr(value, name)
        if (name in without and kind is not Page) or (item is None and name in ABSENT):
            continue
        if name in RAW:
            yield shown, item
        elif name.endswith(NANOS):
            yield shown, None if item is None else usd(item)
        else:
            yield shown, to_json(item, without=without)


# ---- the same as a schema -------------------------------------------------------------------------------------------

NULL: Mapping[str, Any] = {"enum": [None]}  # lawful in OpenAPI 3.0 and 3.1 alike
_PLAIN: Mapping[type, Mapping[str, str]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
}


def schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401  (a type, or a union or sequence of them)
    """The JSON schema of what `to_json` makes of a type."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        known = schema(next(each for each in inner if each is not type(None)))
        return {"oneOf": [known, NULL]}
    if origin in {list, tuple, Sequence}:
        return {"type": "array", "items": schema(inner[0])}
    if isinstance(kind, type) and is_dataclass(kind):
        return _object(kind)
    return dict(_PLAIN.get(kind, {}))


def page_schema(row: type) -> dict[str, Any]:
    number = {"type": "integer"}
    return {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": schema(row)},
            "total": number,
            "page": number,
            "pageSize": number,
            "nextCursor": {"type": "string"},
            "totalCapped": {"type": "boolean"},
        },
        "required": ["rows", "total", "page", "pageSize"],
    }


def _object(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    told = {}
    for name, shown in columns(kind):
        sentence = "US dollars, nine places; null: unknown, never free."
        money = {"oneOf": [{"type": "number"}, NULL], "description": sentence}
        told[shown] = money if name.endswith(NANOS) else {} if name in RAW else schema(hints[name])
    return {"type": "object", "properties": told}
