"""A tool's input: JSON Schema for the model, validated values for the body, both from the same type hints."""

from __future__ import annotations

import inspect
import threading
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError
from pydantic_core import ValidationError as CoreError

from agent.domain.arguments import DEEPEST, raw_text
from agent.domain.canonical import canonical_json
from agent.domain.model_calls import Json
from agent.errors import AgentError, Invalid
from agent.registry.context import ToolContext

CLOSED = ConfigDict(extra="forbid", protected_namespaces=(), allow_inf_nan=False)
NOT_JSON = (
    "The arguments are not valid JSON: one object, every key once, finite numbers, "
    f"at most {DEEPEST} levels of nesting."
)
MOST_PROBLEMS = 8
CONFIRM_FIELDS: Mapping[str, Any] = {
    "confirm": (bool, Field(False, description="True in the second call, to do what the preview said.")),
    "confirmToken": (str | None, Field(None, description="In the second call: the confirmToken of the first.")),
}
_warnings_lock = threading.Lock()  # warnings.catch_warnings is one for all threads


class SchemaProblem(Exception):
    """The declaration gives no schema; the text says what to change."""


class InvalidInput(AgentError):
    """A call's arguments do not fit; the message is told to the model."""

    code = "invalid_arguments"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSchema:
    """What a tool takes. `parameters` None: the body takes the whole model as its first argument."""

    model: type[BaseModel]
    parameters: tuple[str, ...] | None
    context: str | None  # the keyword that takes the ToolContext; None = the body does not ask for it
    json: Mapping[str, Json]

    def parse(self, raw: Json) -> BaseModel:
        """The validated arguments, or `InvalidInput` with a sentence for each mistake."""
        if raw_text(raw) is not None:
            raise InvalidInput(NOT_JSON)
        if not isinstance(raw, dict):
            raise InvalidInput("The arguments must be one JSON object.")
        try:
            arguments = self.model.model_validate(raw)
            canonical_json(arguments.model_dump(mode="json"))
        except ValidationError as error:
            raise InvalidInput(sentences(error, "The arguments are")) from error
        except RecursionError as error:
            raise InvalidInput("The arguments are nested too deeply.") from error
        except (Invalid, PydanticSerializationError) as error:
            raise InvalidInput("The arguments hold a value that JSON cannot say, such as NaN or Infinity.") from error
        return arguments

    def call(self, body: Callable[..., Any], arguments: BaseModel, ctx: ToolContext) -> object:
        """Call the body with the arguments in the way its signature asks for."""
        if self.parameters is None:
            return body(arguments, ctx)
        given = {name: getattr(arguments, name) for name in self.parameters}
        return body(**given, **({self.context: ctx} if self.context else {}))


def sentences(error: CoreError, subject: str) -> str:
    """What is wrong with a value, told to the model that wrote it."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [_sentence(problem["loc"], problem["type"], problem["msg"]) for problem in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        lines.append(f"and {len(problems) - MOST_PROBLEMS} more")
    return f"{subject} not valid: " + "; ".join(lines) + "."


def _sentence(place: tuple[int | str, ...], kind: str, text: str) -> str:
    name = ".".join(str(part) for part in place)[:100] or "the input"
    if kind == "missing":
        return f"{name} is required"
    if kind == "extra_forbidden":
        return f"{name} is not an argument of this tool"
    return f"{name}: {text[:1].lower()}{text[1:]}".removesuffix(".")


def schema_of_model(model: object, body: Callable[..., Any]) -> InputSchema:
    """The schema of a class tool's `Input`, closed against unknown arguments; the body takes (input, ctx)."""
    try:
        inspect.signature(body).bind(None, None)
    except TypeError as error:
        raise SchemaProblem("with an Input, execute takes (self, input, ctx)") from error
    if not (isinstance(model, type) and issubclass(model, BaseModel)) or issubclass(model, RootModel):
        raise SchemaProblem("Input must be a pydantic model with fields")
    closed = _built(lambda: type(model.__name__, (model,), {**_same_place(model), "model_config": CLOSED}))
    return InputSchema(model=closed, parameters=None, context=None, json=json_schema(closed))


def schema_of_confirmed(model: object, prepare: object, commit: Callable[..., Any]) -> InputSchema:
    """The schema of a confirmed tool's `Input`, with the fields of its gate."""
    if not callable(prepare):
        raise SchemaProblem("a confirmed tool has prepare(self, input, ctx) and commit(self, input, ctx)")
    fields = getattr(model, "model_fields", {})
    if model is None or CONFIRM_FIELDS.keys() & fields.keys():
        raise SchemaProblem(f"a confirmed tool has an Input, without {' and '.join(CONFIRM_FIELDS)} of its own")
    schema = schema_of_model(model, commit)
    gated = _built(lambda: create_model(schema.model.__name__, __base__=schema.model, **CONFIRM_FIELDS))
    return replace(schema, model=gated, json=json_schema(gated))


def _same_place(model: type[BaseModel]) -> dict[str, Any]:
    return {"__module__": model.__module__, "__qualname__": model.__qualname__, "__doc__": model.__doc__}


def schema_of_signature(body: Callable[..., Any]) -> InputSchema:
    """The schema of a function's parameters; its ToolContext is no argument."""
    parameters = inspect.signature(body).parameters
    context = next((name for name, each in parameters.items() if _is_context(each)), None)
    asked = {name: each for name, each in parameters.items() if name != context}
    for name, each in asked.items():
        _refuse_parameter(name, each)
    hints = _type_hints(body, asked)
    fields = {name: _field(hints[name], each.default) for name, each in asked.items()}
    model = _built(lambda: create_model("Arguments", __config__=CLOSED, **fields))
    json = {key: value for key, value in json_schema(model).items() if key != "title"}
    return InputSchema(model=model, parameters=tuple(asked), context=context, json=json)


def _is_context(parameter: inspect.Parameter) -> bool:
    hint = parameter.annotation
    if hint is inspect.Parameter.empty:
        return parameter.name == "ctx"
    return hint is ToolContext or (isinstance(hint, str) and hint.rpartition(".")[2] == ToolContext.__name__)


def _refuse_parameter(name: str, parameter: inspect.Parameter) -> None:
    if parameter.kind not in {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}:
        raise SchemaProblem(f"parameter {name!r}: a tool is called by keyword, with the parameters it names")
    if parameter.annotation is inspect.Parameter.empty:
        raise SchemaProblem(f"parameter {name!r} has no type hint")
    if name.startswith("_"):
        raise SchemaProblem(f"parameter {name!r} must not begin with an underscore")


def _type_hints(body: Callable[..., Any], asked: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """The parameters' hints alone: what the body returns may be known to type checkers only."""
    inner = inspect.unwrap(body)
    inner = getattr(inner, "__func__", inner)
    wanted = SimpleNamespace(__annotations__={name: each.annotation for name, each in asked.items()})
    try:
        return typing.get_type_hints(wanted, globalns=getattr(inner, "__globals__", {}), include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise SchemaProblem(f"a type hint cannot be resolved ({error})") from error


def _field(hint: object, default: object) -> Any:  # noqa: ANN401 - pydantic's own pair of type and default
    return (hint, ... if default is inspect.Parameter.empty else default)


def _built(make: Callable[[], Any]) -> Any:  # noqa: ANN401 - a model class, made by pydantic
    """Names that pydantic's own models use too (`copy`, `json`) are lawful arguments of a tool."""
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return make()
        except (PydanticUserError, TypeError, NameError, ValueError) as error:
            raise SchemaProblem(_first_line(error)) from error


def json_schema(model: type[BaseModel]) -> dict[str, Json]:
    """The JSON Schema of a pydantic model; raises `SchemaProblem`."""
    try:
        return model.model_json_schema()
    except (PydanticUserError, TypeError, ValueError) as error:
        raise SchemaProblem(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
