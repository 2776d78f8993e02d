"""What an agent declares of its answers: their form, what may be asked next, who judges them (spec 03 §9, 11 §8)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from agent.domain.arguments import without_fence
from agent.domain.model_calls import Json
from agent.registry.schema import SchemaProblem, json_schema, sentences

COUNT = 3
MOST = 10
GONE = "The agent asks for no form of its answer any more."


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUps:
    """How many questions are suggested behind an answer."""

    count: int = COUNT


class NotOfForm(Exception):
    """A text is not the JSON that is asked for; the message is told to the model."""


def read_follow_ups(declared: object) -> tuple[FollowUps | None, tuple[str, ...]]:
    """The declared follow-ups, and what is wrong with them."""
    if isinstance(declared, bool) or declared is None:
        return FollowUps() if declared else None, ()
    count = getattr(declared, "count", None)
    if isinstance(declared, FollowUps) and type(count) is int and 1 <= count <= MOST:
        return declared, ()
    return None, (f"follow_ups is {declared!r}: True, or FollowUps(count=1 to {MOST})",)


def output_problems(kind: object, repairs: object) -> Iterator[str]:
    """What is wrong with the declared form of an answer."""
    if kind is not None and not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        yield f"output_type is {kind!r}: a pydantic model"
    elif kind is not None:
        try:
            json_schema(kind)
        except SchemaProblem as problem:
            yield f"output_type has no schema: {problem}"
    if type(repairs) is not int or repairs < 0:
        yield f"output_repairs is {repairs!r}: a whole number from 0 up"


def parsed(kind: type[BaseModel] | None, text: str) -> Json:
    """The value in a text of this form, as JSON; raises `NotOfForm` with a sentence for each mistake."""
    if kind is None:
        raise NotOfForm(GONE)
    try:
        value: Json = json.loads(kind.model_validate_json(without_fence(text)).model_dump_json())
    except ValidationError as error:
        raise NotOfForm(sentences(error, "The answer is")) from error
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise NotOfForm("The answer holds a value that JSON cannot say.") from error
    return value
