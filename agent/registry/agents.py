"""Agents as a host declares them: a class, its decorator's arguments, and methods that are tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict, TypeVar, Unpack, overload

from pydantic import BaseModel

from agent.domain.history import HistoryPolicy
from agent.domain.windows import History
from agent.registry.book import registry
from agent.registry.context import PromptContext
from agent.registry.declared import Options, Origin, docstring, make, refuse_unknown, texts
from agent.registry.definitions import AgentDefinition, Handoff, ToolDefinition
from agent.registry.names import human_name, snake_name
from agent.registry.output import FollowUps, read_follow_ups
from agent.registry.questions import read_intake
from agent.registry.tools import define
from agent.spi import Contributor, InputProcessor, OutputProcessor

Declared = TypeVar("Declared", bound=type)


class AgentOptions(TypedDict, total=False):
    """The options of `@agent`; class attributes of the same names are equivalent."""

    name: str
    prompt: str | Callable[[PromptContext], Any]
    contributors: Sequence[Contributor]
    tools: Sequence[object] | str | None
    model: str | None
    lock_model: bool
    max_steps: int | None
    history: History | HistoryPolicy | None
    approval_mode: str | None
    allow_ask: bool
    intake: Mapping[str, Any] | None
    follow_ups: bool | FollowUps
    output_type: type[BaseModel] | None
    output_repairs: int
    input_processors: Sequence[InputProcessor]
    output_processors: Sequence[OutputProcessor]
    handoffs: Sequence[Handoff | str]
    personas: Sequence[object]
    default_persona: object
    roles: Sequence[str]
    permission: str | None
    label: str
    description: str


@overload
def agent(target: Declared, /) -> Declared: ...
@overload
def agent(**options: Unpack[AgentOptions]) -> Callable[[Declared], Declared]: ...
def agent(target: Any = None, /, **options: Any) -> Any:
    """Declare an agent: a class whose attributes and methods say what the decorator's arguments do not."""
    refuse_unknown("agent", options, AgentOptions.__annotations__)

    def declare(declared: type) -> type:
        definition = _define(declared, options)
        declared.__agent__ = definition  # type: ignore[attr-defined]
        registry.add_agent(definition)
        for method in definition.methods:
            registry.add_tool(method)
        return declared

    return declare if target is None else declare(target)


def _define(declared: type, given: Mapping[str, Any]) -> AgentDefinition:
    made, flaws = make(declared)
    option = Options(made, given)
    name = option("name", snake_name(declared.__name__))
    intake, wrong = read_intake(option("intake"))
    follow_ups, misdeclared = read_follow_ups(option("follow_ups", False))
    return AgentDefinition(
        name=name,
        label=option("label", human_name(str(name))),
        description=option("description", docstring(declared)),
        prompt=option("prompt", ""),
        contributors=tuple(option("contributors", ())),
        tools=_tools(option("tools")),
        methods=tuple(_methods(declared, made, owner=str(name))),
        model=option("model"),
        lock_model=option("lock_model", False),
        max_steps=option("max_steps"),
        history=option("history"),
        approval_mode=option("approval_mode"),
        allow_ask=option("allow_ask", False),
        intake=intake,
        follow_ups=follow_ups,
        output_type=option("output_type"),
        output_repairs=option("output_repairs", 1),
        input_processors=tuple(option("input_processors", ())),
        output_processors=tuple(option("output_processors", ())),
        handoffs=tuple(Handoff(each) if isinstance(each, str) else each for each in option("handoffs", ())),
        personas=tuple(option("personas", ())),
        default_persona=option("default_persona"),
        roles=texts(option("roles", ())) or (),
        permission=option("permission"),
        origin=Origin.of(declared),
        flaws=(*flaws, *wrong, *misdeclared),
    )


def _tools(value: Sequence[object] | str | None) -> tuple[object, ...] | str | None:
    return value if value is None or isinstance(value, str) else tuple(value)


def _methods(declared: type, made: object, *, owner: str) -> Iterator[ToolDefinition]:
    """The methods marked as tools, in the order they are written, a base class's first."""
    written: dict[str, Any] = {}
    for base in reversed(declared.__mro__):
        written |= {name: each for name, each in vars(base).items() if hasattr(each, "__agent_tool_options__")}
    for name, function in written.items():
        registry.claim_method(Origin.of(function))
        if made is not None:
            yield define(getattr(made, name), function.__agent_tool_options__, owner=owner)
