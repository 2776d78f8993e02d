"""Tools as a host declares them: a function or a class, and what decides who may use them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypedDict, TypeVar, Unpack, overload

from agent.domain.actor import Actor
from agent.registry.book import registry
from agent.registry.context import Confirm, Described, OfferContext, Presentation, ToolContext
from agent.registry.declared import Options, Origin, docstring, make, refuse_unknown, texts
from agent.registry.definitions import Handoff, ToolDefinition
from agent.registry.names import snake_name

Target = TypeVar("Target", bound=Callable[..., Any])


class ToolOptions(TypedDict, total=False):
    """The options of `@tool`; class attributes of the same names are equivalent."""

    name: str
    kind: str
    roles: Sequence[str] | None
    permission: str | None
    can_use: Callable[[Actor], bool]
    enabled: bool
    is_enabled: Callable[[OfferContext], bool]
    describe: Callable[[OfferContext], Described | str | None]
    requires_approval: bool
    approver: str
    approval_mode: str | None
    confirm: Confirm | None
    preflight: Callable[[Any, ToolContext, str], object]
    present: Callable[[Any, Any], Presentation | None]
    terminal: bool
    replacement_key: Callable[[Any], str | None]
    timeout: float | None
    four_eyes: bool
    on_lost: str
    confirmed: bool


class Tool:
    """Base of class tools: `execute(self, input, ctx)` with an `Input`, or `execute(self, ctx, ...)` with typed fields.

    Hooks are methods: `can_use(actor)`, `is_enabled(ctx)`, `describe(ctx)`, `preflight(input, ctx, phase)`,
    `present(input, output)`, `replacement_key(input)`; instead of `execute` a confirmed one has `prepare(input, ctx)`,
    whose answer is the preview, and `commit(input, ctx)`.
    """

    name: ClassVar[str]
    kind: ClassVar[str] = "read"
    roles: ClassVar[Sequence[str] | None] = None
    permission: ClassVar[str | None] = None
    enabled: ClassVar[bool] = True
    requires_approval: ClassVar[bool] = True
    approver: ClassVar[str] = "requester"
    approval_mode: ClassVar[str | None] = None
    confirm: ClassVar[Confirm | None] = None
    terminal: ClassVar[bool] = False
    timeout: ClassVar[float | None] = None
    four_eyes: ClassVar[bool] = False
    on_lost: ClassVar[str] = "retry"
    confirmed: ClassVar[bool] = False


@overload
def tool(target: Target, /) -> Target: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Target], Target]: ...
def tool(target: Any = None, /, **options: Any) -> Any:
    """Declare a tool: a function, a class with `execute`, or a method of an agent class."""
    refuse_unknown("tool", options, ToolOptions.__annotations__)

    def declare(declared: Any) -> Any:  # noqa: ANN401 - what comes in goes out
        if _is_method(declared):
            declared.__agent_tool_options__ = options
            registry.expect_method(Origin.of(declared))
        else:
            definition = define(declared, options)
            declared.__agent_tool__ = definition
            registry.add_tool(definition)
        return declared

    return declare if target is None else declare(target)


def _is_method(declared: object) -> bool:
    return inspect.isfunction(declared) and next(iter(inspect.signature(declared).parameters), "") == "self"


def define(
    declared: Any,  # noqa: ANN401
    given: Mapping[str, Any],
    *,
    owner: str | None = None,
    handoff: Handoff | None = None,
    description: str | None = None,
) -> ToolDefinition:
    """The definition of a function, a bound method or a class tool; its description is the docstring, else given."""
    is_class = isinstance(declared, type)
    made, flaws = make(declared) if is_class else (None, ())
    option = Options(made, given)
    return ToolDefinition(
        name=option("name", snake_name(declared.__name__)),
        kind=option("kind", "read"),
        description=docstring(declared) if description is None else description,
        body=getattr(made, "commit" if option("confirmed") else "execute", None) if is_class else declared,
        origin=Origin.of(declared),
        input_model=getattr(made, "Input", None),
        owner=owner,
        flaws=flaws,
        roles=texts(option("roles")),
        permission=option("permission"),
        can_use=option("can_use"),
        enabled=option("enabled", True),
        is_enabled=option("is_enabled"),
        describe=option("describe"),
        requires_approval=option("requires_approval", True),
        approver=option("approver", "requester"),
        approval_mode=option("approval_mode"),
        confirm=option("confirm"),
        preflight=option("preflight"),
        present=option("present"),
        terminal=option("terminal", False),
        replacement_key=option("replacement_key"),
        timeout=option("timeout"),
        four_eyes=option("four_eyes", False),
        on_lost=option("on_lost", "retry"),
        confirmed=option("confirmed", False),
        prepare=option("prepare"),
        handoff=handoff,
    )
