"""What a tool returns, as JSON: what cannot be written is refused with a sentence."""

from __future__ import annotations

import json

from django.utils.functional import Promise
from pydantic_core import PydanticSerializationError, to_jsonable_python

from agent.domain.canonical import compact_json
from agent.domain.model_calls import Json
from agent.errors import Invalid


class NotJson(Exception):
    """The value has no JSON form; the text says why."""


def as_json(value: object) -> Json:
    """The value after a JSON round trip; pydantic models, dataclasses, dates and the like are dumped, None is null."""
    try:
        return json.loads(compact_json(value))
    except Invalid:
        return _converted(value)


def _converted(value: object) -> Json:
    try:
        return json.loads(compact_json(to_jsonable_python(value, fallback=_fallback)))
    except (PydanticSerializationError, Invalid, ValueError, TypeError, RecursionError) as error:
        raise NotJson(str(error).partition("\n")[0]) from error


def _fallback(value: object) -> str:
    """Django's lazy texts are texts."""
    if isinstance(value, Promise):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
