"""Questions as they are declared: by a model that asks, and by an agent that asks first (spec 07 §6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent.domain.questions import PATTERN_MOST, QUESTIONS_MOST, VALUE_MOST, VALUES_MOST, question_problems

Text = Annotated[str, Field(min_length=1, max_length=VALUE_MOST)]
Kind = Literal["text", "textarea", "number", "boolean", "date", "email", "url", "select"]


class Closed(BaseModel):
    """A mistyped key is a mistake."""

    model_config = ConfigDict(extra="forbid")


class Option(Closed):
    value: Text
    label: Text
    hotkey: Annotated[str, Field(max_length=1)] | None = None


class InputRule(Closed):
    type: Kind = "text"
    placeholder: Annotated[str, Field(max_length=VALUE_MOST)] | None = None
    required: bool = False
    min: float | None = Field(None, allow_inf_nan=False)
    max: float | None = Field(None, allow_inf_nan=False)
    pattern: Annotated[str, Field(max_length=PATTERN_MOST)] | None = None


class Question(Closed):
    """One question; with options, the defaults are what is assumed if the user does not choose."""

    id: Annotated[str, Field(min_length=1, max_length=64)]
    prompt: Text
    description: Text | None = None
    options: Annotated[list[Option], Field(max_length=VALUES_MOST)] | None = None
    multiple: bool = False
    defaults: Annotated[list[Text], Field(max_length=VALUES_MOST)] | None = None
    allowFreeText: bool = False  # noqa: N815 - the question's own words
    input: InputRule | None = None


class Intake(Closed):
    """What an agent asks before it answers: in a conversation that was never answered, or before every turn."""

    preamble: Text | None = None
    when: Literal["thread-start", "every-turn"] = "thread-start"
    questions: Annotated[list[Question], Field(min_length=1, max_length=QUESTIONS_MOST)]

    @model_validator(mode="after")
    def lawful(self) -> Intake:
        """Questions that nobody could answer are a mistake of the declaration."""
        problems = question_problems(as_json(self.questions), assumes=False)
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def is_due(self, *, answered: bool) -> bool:
        """Whether a turn of a conversation that was `answered` before begins with it."""
        return self.when == "every-turn" or not answered

    def asked(self) -> dict[str, Any]:
        """What the user is asked, as JSON."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"when"})


def as_json(questions: list[Question]) -> list[Mapping[str, Any]]:
    """Questions as a call holds them."""
    return [each.model_dump(exclude_none=True) for each in questions]


def read_intake(declared: object) -> tuple[Intake | None, tuple[str, ...]]:
    """The declared intake, and what is wrong with it."""
    if declared is None or isinstance(declared, Intake):
        return declared, ()
    try:
        return Intake.model_validate(declared), ()
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        places = ((".".join(str(part) for part in each["loc"]), each["msg"]) for each in found)
        return None, tuple(f"intake{'.' * bool(place)}{place}: {text}" for place, text in places)
