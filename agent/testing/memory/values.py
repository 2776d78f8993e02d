"""What the columns of the tables do to a value, done in memory: copied, cleaned, or refused (spec 01 §1)."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, TypeVar

from agent.domain.canonical import compact_json
from agent.domain.text import clean_text, is_exact
from agent.errors import Invalid

ID = 64
HASH = 64
REF = 255
NAME = 128
WORD = 32

_MS = timedelta(milliseconds=1)
T = TypeVar("T", bound="str | None")


def exact(field: str, value: T, length: int) -> T:
    """An id, a reference or a name: as it is, or refused."""
    if value is not None and not is_exact(value):
        raise Invalid.field(field, "without NUL and lone surrogates")
    return fitting(field, value, length)


def fitting(field: str, value: T, length: int) -> T:
    """A text with a limit: as it is, or refused."""
    if value is not None and len(value) > length:
        raise Invalid.field(field, f"at most {length} characters")
    return value


def cleaned(value: str | None) -> str | None:
    """Text of any length that may be absent."""
    return None if value is None else clean_text(value)


def copied(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The same JSON with nothing shared, as it would come back from a text column; `Invalid` for what is not JSON."""
    try:
        return _copy(value)
    except RecursionError as error:
        raise Invalid("not JSON: nested too deeply") from error


def listed(value: Any) -> Any:  # noqa: ANN401 - a JSON list or None
    """A list of a message, copied; an empty one is absent."""
    return copied(value) or None


def ms_between(start: datetime, end: datetime) -> int:
    """Whole milliseconds, never negative: clocks of two processes may differ."""
    return max((end - start) // _MS, 0)


def _copy(value: Any) -> Any:  # noqa: ANN401 - any JSON
    kind = type(value)
    if value is None or kind is str or kind is bool or kind is int:
        return value
    if kind is dict and all(type(key) is str for key in value):
        return {key: _copy(item) for key, item in value.items()}
    if kind is list:
        return [_copy(item) for item in value]
    return json.loads(compact_json(value))  # tuples, subclasses, odd keys, not finite: what a text column would do
