"""The built-in tool `ask`: the model puts questions to the user, and waits for the answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from agent.domain.questions import ASK, ASKED_MOST, question_problems
from agent.registry.context import ToolContext
from agent.registry.questions import Closed, Question, as_json
from agent.registry.tools import Tool, define


class AskInput(Closed):
    questions: Annotated[list[Question], Field(min_length=1, max_length=ASKED_MOST)]

    @model_validator(mode="after")
    def lawful(self) -> AskInput:
        """Questions that nobody could answer are a mistake of the model, and are told to it."""
        problems = question_problems(as_json(self.questions))
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
