"""The built-in tool `ask`: the model puts questions to the user, and waits for the answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent.domain.questions import ASK, ASKED_MOST, PATTERN_MOST, VALUE_MOST, VALUES_MOST, question_problems
from agent.registry.context import ToolContext
from agent.registry.tools import Tool, define

Text = Annotated[str, Field(min_length=1, max_length=VALUE_MOST)]
Kind = Literal["text", "textarea", "number", "boolean", "date", "email", "url", "select"]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Option(_Closed):
    value: Text
    label: Text
    hotkey: Annotated[str, Field(max_length=1)] | None = None


class InputRule(_Closed):
    type: Kind = "text"
    placeholder: Annotated[str, Field(max_length=VALUE_MOST)] | None = None
    required: bool = False
    min: float | None = Field(None, allow_inf_nan=False)
    max: float | None = Field(None, allow_inf_nan=False)
    pattern: Annotated[str, Field(max_length=PATTERN_MOST)] | None = None


class Question(_Closed):
    """One question; with options, the defaults are what is assumed if the user does not choose."""

    id: Annotated[str, Field(min_length=1, max_length=64)]
    prompt: Text
    description: Text | None = None
    options: Annotated[list[Option], Field(max_length=VALUES_MOST)] | None = None
    multiple: bool = False
    defaults: Annotated[list[Text], Field(max_length=VALUES_MOST)] | None = None
    allowFreeText: bool = False  # noqa: N815 - the question's own words
    input: InputRule | None = None


class AskInput(_Closed):
    questions: Annotated[list[Question], Field(min_length=1, max_length=ASKED_MOST)]

    @model_validator(mode="after")
    def lawful(self) -> AskInput:
        """Questions that nobody could answer are a mistake of the model, and are told to it."""
        problems = question_problems([each.model_dump(exclude_none=True) for each in self.questions])
        if problems:
            raise ValueError("; ".join(problems))
        return self


class _Ask(Tool):
    """Ask the user up to five short questions at once and wait for the answers.

    Use it when you cannot go on without knowing, not to confirm an action: actions ask for themselves.
    """

    Input = AskInput

    def execute(self, input: AskInput, ctx: ToolContext) -> None:  # noqa: A002
        raise AssertionError("people answer this one")


ask = define(_Ask, {"name": ASK, "kind": ASK})
