"""What is declared, as values: tools, agents, personas, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from agent.domain.actor import Actor
from agent.domain.approvals import approver_problem
from agent.domain.history import HistoryPolicy
from agent.domain.model_calls import Json
from agent.domain.windows import History
from agent.registry.context import Confirm, Described, OfferContext, Presentation, PromptContext, ToolContext
from agent.registry.declared import Origin, is_async
from agent.registry.output import FollowUps, output_problems
from agent.registry.questions import Intake
from agent.registry.schema import InputSchema, SchemaProblem, schema_of_confirmed, schema_of_model, schema_of_signature
from agent.spi import Contributor, InputProcessor, OutputProcessor

KINDS = ("read", "action")
MODES = ("blocking", "independent")
# Options that mean something to an action alone, with the value that says nothing.
ACTIONS_ONLY: Mapping[str, object] = {
    "approval_mode": None,
    "confirm": None,
    "preflight": None,
    "replacement_key": None,
    "requires_approval": True,
    "approver": "requester",
    "four_eyes": False,
    "on_lost": "retry",
}
ALL = "*"
DEFAULT_PROMPT = "You are a helpful assistant."


@dataclass(frozen=True)
class Handoff:
    """An agent that another one may ask: awaited, or `detached`, when its answer comes later as a message."""

    agent: str
    detached: bool = field(default=False, kw_only=True)
    description: str | None = field(default=None, kw_only=True)  # what the model is told; None = made of the agent's

    @property
    def tool_name(self) -> str:
        """The tool by which a model asks it."""
        return f"{'start' if self.detached else 'ask'}_{self.agent.replace('-', '_')}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ToolDefinition:
    """A declared tool; `owner` is the agent class whose method it is."""

    name: str
    kind: str
    description: str
    body: Callable[..., Any] | None  # None = a class without `execute`
    origin: Origin
    input_model: object | None  # a class tool's Input
    owner: str | None
    flaws: tuple[str, ...]  # found when it was declared
    roles: tuple[str, ...] | None
    permission: str | None
    can_use: Callable[[Actor], bool] | None
    enabled: bool
    is_enabled: Callable[[OfferContext], bool] | None
    describe: Callable[[OfferContext], Described | str | None] | None
    requires_approval: bool
    approver: str
    approval_mode: str | None
    confirm: Confirm | None
    preflight: Callable[[Any, ToolContext, str], object] | None
    present: Callable[[Any, Any], Presentation | None] | None
    terminal: bool
    replacement_key: Callable[[Any], str | None] | None
    timeout: float | None
    four_eyes: bool
    on_lost: str
    confirmed: bool
    prepare: Callable[[Any, ToolContext], object] | None  # of a confirmed tool, whose body is its commit
    handoff: Handoff | None = None  # of a tool that asks another agent

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} of {self.origin}>"

    @cached_property
    def input(self) -> InputSchema:
        """Built at first use, when the names of its type hints are all there; raises `SchemaProblem`."""
        if self.body is None:
            raise SchemaProblem(f"there is no {'commit' if self.confirmed else 'execute'} method")
        if self.confirmed:
            return schema_of_confirmed(self.input_model, self.prepare, self.body)
        if self.input_model is None:
            return schema_of_signature(self.body)
        return schema_of_model(self.input_model, self.body)

    @property
    def schema(self) -> Mapping[str, Json]:
        return self.input.json

    def parse(self, raw: Json) -> BaseModel:
        """The validated arguments; raises `InvalidInput` with a sentence for each mistake."""
        return self.input.parse(raw)

    def call(self, arguments: BaseModel, ctx: ToolContext) -> object:
        """Start the body: its answer, or an awaitable of it."""
        if self.body is None:
            raise SchemaProblem("there is no execute method")
        return self.input.call(self.body, arguments, ctx)

    @cached_property
    def runs_async(self) -> bool:
        return is_async(self.body)

    @cached_property
    def prepares_async(self) -> bool:
        return is_async(self.prepare)

    @cached_property
    def preflights_async(self) -> bool:
        return is_async(self.preflight)

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """What keeps it from being used, one sentence each."""
        return tuple(f"Tool {self.name!r} ({self.origin}): {text}." for text in self._problems())

    def _problems(self) -> Iterator[str]:
        yield from self.flaws
        if not self.description.strip():
            yield "a description (its docstring) is needed: the model chooses by it"
        try:
            _ = self.input
        except SchemaProblem as problem:
            yield f"invalid schema: {problem}"
        else:
            yield from _confirm_problems(self)
        yield from _option_problems(self)
        for name in ("can_use", "is_enabled", "describe", "present"):
            if is_async(getattr(self, name)):
                yield f"{name} must be a plain function, not async"


def _says_something(confirm: object) -> bool:
    return isinstance(confirm, Confirm) and all(_is_text(text) for text in confirm.texts().values())


def _confirm_problems(tool: ToolDefinition) -> Iterator[str]:
    if tool.confirm is None:
        return
    if not _says_something(tool.confirm):
        yield "confirm is a Confirm with a title and a verb"
        return
    try:
        unknown = sorted(tool.confirm.places() - set(tool.schema.get("properties", ())))
    except ValueError as error:
        yield f"confirm is no template: {error}"
    else:
        yield from (f"confirm asks for {name!r}, which is no field of the input" for name in unknown)


def _option_problems(tool: ToolDefinition) -> Iterator[str]:
    if tool.confirmed and tool.kind != "read":
        yield "confirmed is for reads only: an action waits for a person"
    if tool.kind not in KINDS:
        yield f"kind is {tool.kind!r}: read or action"
    if tool.kind == "read":
        idle = {name: getattr(tool, name) for name in ACTIONS_ONLY}
        yield from (f"{name} is for actions only" for name, value in idle.items() if value != ACTIONS_ONLY[name])
    if tool.approval_mode not in {None, *MODES}:
        yield f"approval_mode is {tool.approval_mode!r}: blocking or independent"
    if tool.on_lost not in {"retry", "hold"}:
        yield f"on_lost is {tool.on_lost!r}: retry or hold"
    if (problem := approver_problem(tool.approver)) is not None:
        yield problem
    if tool.permission is not None and "." not in str(tool.permission):
        yield f"permission is {tool.permission!r}: write it like app.codename"
    if tool.timeout is not None and not _is_seconds(tool.timeout):
        yield f"timeout is {tool.timeout!r}: seconds above 0"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_seconds(value: object) -> bool:
    return type(value) in {int, float} and 0 < value < math.inf  # type: ignore[operator]


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonaDefinition:
    """A named variant of an agent's prompt and tools; a callable prompt is given the agent's own and wraps it."""

    id: str
    label: str
    prompt: str | Callable[[str], str]
    allowed_tools: frozenset[str] | None = None  # None = all of the agent's
    aliases: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    origin: Origin

    def prompt_from(self, base: str) -> str:
        """The base prompt of a run under this persona."""
        return self.prompt if isinstance(self.prompt, str) else self.prompt(base)


@dataclass(frozen=True, kw_only=True, eq=False)
class AgentDefinition:
    """A declared agent; `name` None is the unnamed default of a site that declares none."""

    name: str | None
    label: str
    description: str = ""
    prompt: str | Callable[[PromptContext], Any]
    contributors: tuple[Contributor, ...] = ()
    tools: tuple[object, ...] | str | None = None  # None = those of its app, "*" = all
    methods: tuple[ToolDefinition, ...] = ()
    model: str | None = None
    lock_model: bool = False
    max_steps: int | None = None  # None = AGENT["MAX_STEPS"]
    history: History | HistoryPolicy | None = None
    approval_mode: str | None = None
    allow_ask: bool = False
    intake: Intake | None = None
    follow_ups: FollowUps | None = None
    output_type: type[BaseModel] | None = None
    output_repairs: int = 1
    input_processors: tuple[InputProcessor, ...] = ()
    output_processors: tuple[OutputProcessor, ...] = ()
    handoffs: tuple[Handoff, ...] = ()
    personas: tuple[object, ...] = ()
    default_persona: object = None
    roles: tuple[str, ...] = ()
    permission: str | None = None
    origin: Origin = field(default=Origin("agent", "unnamed"))
    flaws: tuple[str, ...] = ()

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with the declaration by itself, one sentence each."""
        return tuple(f"Agent {self.name!r} ({self.origin}): {text}." for text in self._problems())

    def _problems(self) -> Iterator[str]:
        yield from self.flaws
        if not callable(self.prompt) and not _is_text(self.prompt):
            yield "a prompt is needed: text, or a callable of a context"
        if self.max_steps is not None and (type(self.max_steps) is not int or self.max_steps < 1):
            yield f"max_steps is {self.max_steps!r}: a whole number from 1 up"
        if isinstance(self.tools, str) and self.tools != ALL:
            yield f"tools is {self.tools!r}: a list, or '*'"
        asks: object = self.allow_ask
        if not isinstance(asks, bool):
            yield f"allow_ask is {asks!r}: True or False"
        if self.lock_model and not self.model:
            yield "lock_model needs a model"
        if self.approval_mode not in {None, *MODES}:
            yield f"approval_mode is {self.approval_mode!r}: blocking or independent"
        if self.permission is not None and "." not in str(self.permission):
            yield f"permission is {self.permission!r}: write it like app.codename"
        yield from output_problems(self.output_type, self.output_repairs)
        yield from _callable_problems(self)


def _callable_problems(agent: AgentDefinition) -> Iterator[str]:
    for option in ("contributors", "input_processors", "output_processors"):
        objects: tuple[object, ...] = getattr(agent, option)
        name = option.removesuffix("s").replace("_", " ")
        yield from (f"{name} {each!r} is not callable" for each in objects if not callable(each))
    for each in agent.output_processors:
        if getattr(each, "incremental", False) and is_async(each):
            yield f"output processor {each!r} is incremental and async: a plain function judges text as it comes"
        lookback = getattr(each, "lookback", 0)
        if type(lookback) is not int or lookback < 0:
            yield f"lookback of output processor {each!r} is {lookback!r}: a number of characters"


UNNAMED = AgentDefinition(name=None, label="(default)", prompt=DEFAULT_PROMPT, tools=())
