"""A tool on its way through a turn: offered to the model, admitted when it is called, executed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel

from agent.conf import agent_settings
from agent.db import in_db, is_transient
from agent.domain import frames
from agent.domain.model_calls import Frame, Json, ToolSpec
from agent.domain.redaction import redact, redacted_trace
from agent.domain.text import clean_text
from agent.errors import ToolError
from agent.flows import host_code
from agent.flows.confirming import gated, is_confirming
from agent.flows.gates import asks_host, listed, open_tools
from agent.flows.outputs import NotJson, as_json
from agent.flows.reads import ReadOnly
from agent.registry import AgentDefinition, InvalidInput, OfferContext, Presentation, ToolContext, ToolDefinition

log = logging.getLogger("agent.tools")

ATTEMPTS = 2  # of a body that a transient database error stops
PAUSE_SECONDS = 0.15
SHOWN_NAME = 64

T = TypeVar("T")
Pause = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A tool that this actor's model is shown; its kind is stamped here and never decided again."""

    tool: ToolDefinition
    kind: str
    spec: ToolSpec


class Admitted(NamedTuple):
    """A call that may run, with its validated arguments."""

    offered: Offered
    input: BaseModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A call that is a failure before it runs; `message` is told to the model."""

    code: str  # unknown_tool or invalid_arguments
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """How a body ended. `error` is told to the model; `detail` is the full text, for the row alone."""

    output: Json = None
    error: str | None = None
    error_code: str | None = None  # tool_failed, tool_timeout or output_not_json
    detail: str | None = None
    denied: str | None = None  # by a preflight: why nothing was done
    ms: int = 0
    ui: tuple[dict[str, Json], ...] = ()
    text: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.error is None and self.denied is None


async def offer(
    definition: AgentDefinition, *, ctx: OfferContext, only: frozenset[str] | None = None
) -> tuple[Offered, ...]:
    """The tools that all seven gates let pass, in the agent's order; `only` asks again about a few of them."""
    tools = [tool for tool in listed(definition, ctx) if only is None or tool.name in only]
    passed = await in_db(open_tools, tools, ctx) if asks_host(tools) else open_tools(tools, ctx)
    return tuple(
        Offered(
            tool=each.tool,
            kind=each.tool.kind,
            spec=ToolSpec(name=each.tool.name, description=each.description, schema=each.tool.schema),
        )
        for each in passed
    )


async def still_open(
    definition: AgentDefinition, offered: Sequence[Offered], called: frozenset[str], *, ctx: OfferContext
) -> Sequence[Offered]:
    """The gates are asked again when a tool is called: what closed meanwhile was never there."""
    if not called:
        return offered
    now = {one.spec.name for one in await offer(definition, ctx=ctx, only=called)}
    return [one for one in offered if one.spec.name not in called or one.spec.name in now]


def admit(offered: Sequence[Offered], name: str, raw_input: Json) -> Admitted | Refused:
    """Whether the call names an offered tool with lawful arguments; a refusal hints at no other tool."""
    found = next((each for each in offered if each.spec.name == name), None)
    if found is None:
        return Refused(code="unknown_tool", message=unknown_tool(offered, name))
    try:
        return Admitted(found, found.tool.parse(raw_input))
    except InvalidInput as error:
        return Refused(code=error.code, message=error.message)


def unknown_tool(offered: Sequence[Offered], name: str) -> str:
    """The same sentence for a tool that does not exist and for one that this actor may not use."""
    names = ", ".join(each.spec.name for each in offered)
    rest = f"The tools here are: {names}." if names else "There are no tools here."
    return f'There is no tool "{clean_text(name[:SHOWN_NAME])}". {rest}'


async def execute(
    tool: ToolDefinition, arguments: BaseModel, ctx: ToolContext, *, pause: Pause = asyncio.sleep
) -> ToolResult:
    """Run the body to its end, its failure or its timeout; only the run's own signals pass through as exceptions."""
    started = time.monotonic()
    shown = _Shown(ctx, asyncio.get_running_loop())
    told = replace(ctx, emit=shown.emit, store=ReadOnly(ctx.store))
    try:
        result = await in_time(
            tool,
            ctx,
            partial(gated, tool, arguments, told) if tool.confirmed else partial(tool.call, arguments, told),
            lambda answer: succeeded(tool, arguments, answer, told),
            runs_async=tool.confirmed or tool.runs_async,
            pause=pause,
        )
    finally:
        shown.close()
    return replace(result, ms=round((time.monotonic() - started) * 1000), ui=shown.components(result.ui))


async def in_time(
    tool: ToolDefinition,
    ctx: ToolContext,
    call: Callable[[], object],
    then: Callable[[object], T],
    *,
    runs_async: bool,
    pause: Pause = asyncio.sleep,
) -> T | ToolResult:
    """What `then` makes of the answer of a tool's own code; a failed result when it raises or takes too long."""
    work = asyncio.ensure_future(_attempts(tool, ctx, call, then, runs_async=runs_async, pause=pause))
    timeout = tool.timeout if tool.timeout is not None else agent_settings().tool_timeout_seconds
    try:
        done, _ = await asyncio.wait({work}, timeout=timeout)
    except asyncio.CancelledError:
        work.cancel()  # the worker itself stops: nothing is left running behind it
        raise
    if not done:
        _leave(work, tool, ctx)
        return failed("tool_timeout", f'The tool "{tool.name}" did not answer within {timeout:g} seconds.')
    if work.cancelled():  # one that cancelled itself has failed like any other
        return _raised(asyncio.CancelledError("the tool cancelled itself"), tool, ctx)
    return work.result()


class _Shown:
    """The components that a body emits: written at once, the last props of each id kept; deaf after its end."""

    def __init__(self, ctx: ToolContext, loop: asyncio.AbstractEventLoop) -> None:
        self._ctx, self._loop, self._open = ctx, loop, True
        self._frames: list[Frame] = []

    def emit(self, frame: Frame) -> None:
        """From any thread; what comes after the end of the call is dropped."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._take(frame)
        else:
            self._loop.call_soon_threadsafe(self._take, frame)

    def _take(self, frame: Frame) -> None:
        if self._open:
            self._frames.append(frame)
            self._ctx.emit(frame)

    def close(self) -> None:
        self._open = False

    def components(self, presented: Sequence[dict[str, Json]]) -> tuple[dict[str, Json], ...]:
        return (*frames.stored_ui(self._frames), *presented)


async def _attempts(
    tool: ToolDefinition,
    ctx: ToolContext,
    call: Callable[[], object],
    then: Callable[[object], T],
    *,
    runs_async: bool,
    pause: Pause,
) -> T | ToolResult:
    for attempt in range(1, ATTEMPTS + 1):
        ended = await host_code.ended(call, then, runs_async=runs_async)
        if not isinstance(ended, BaseException):
            return ended
        if not is_transient(ended) or attempt == ATTEMPTS:
            return _raised(ended, tool, ctx)
        log.info("Tool %s (call %s) met a busy database and is tried again.", tool.name, ctx.tool_call_id)
        await pause(PAUSE_SECONDS * attempt)
    raise AssertionError("unreachable")


def succeeded(tool: ToolDefinition, arguments: BaseModel, answer: object, ctx: ToolContext) -> ToolResult:
    """The result that an answer is, with its presentation."""
    try:
        output = as_json(answer)
    except NotJson as error:
        return failed("output_not_json", f'The answer of the tool "{tool.name}" cannot be written as JSON: {error}.')
    shown = _presented(tool, arguments, answer, ctx)
    ui = tuple(_component(each, ctx) for each in shown.ui)
    return ToolResult(output=output, text=shown.text, ui=ui)


def _presented(tool: ToolDefinition, arguments: BaseModel, answer: object, ctx: ToolContext) -> Presentation:
    """How the tool wants it shown; a presentation that fails takes nothing from the result."""
    if tool.present is None or (tool.confirmed and not is_confirming(arguments)):
        return Presentation()
    try:
        shown = tool.present(arguments, answer) or Presentation()
        return Presentation(shown.text, [as_json(dict(each)) for each in shown.ui])
    except Exception as error:
        host_code.unless_signal(error)
        log.warning(
            "The presentation of tool %s (call %s) failed: %s", tool.name, ctx.tool_call_id, redacted_trace(error)
        )
        return Presentation()


def _component(component: object, ctx: ToolContext) -> dict[str, Json]:
    given = dict(component) if isinstance(component, dict) else {}
    default = f"{ctx.tool_call_id}:{given.get('component', 'ui')}"
    return {"id": default, **given, "toolCallId": ctx.tool_call_id}


def _raised(error: BaseException, tool: ToolDefinition, ctx: ToolContext) -> ToolResult:
    """A ToolError speaks to the model; of anything else the model learns only that it happened."""
    if isinstance(error, ToolError):
        return failed(error.code, error.message)
    log.error("Tool %s (call %s) failed: %s", tool.name, ctx.tool_call_id, redacted_trace(error))
    message = f'The tool "{tool.name}" failed unexpectedly. Nothing more is known of it.'
    return replace(failed("tool_failed", message), detail=redact(f"{type(error).__name__}: {error}"))


def failed(code: str, message: str) -> ToolResult:
    """A failure that the model is told of in this sentence."""
    return ToolResult(error=message, error_code=code)


_left: set[asyncio.Future[Any]] = set()  # a task that nobody holds may vanish in mid-work


def _leave(work: asyncio.Future[T], tool: ToolDefinition, ctx: ToolContext) -> None:
    """Nobody waits any more, and nobody kills the work; how it ends is in the log."""

    def ended(late: asyncio.Future[T]) -> None:
        _left.discard(late)
        if not late.cancelled():
            log.warning(
                "Tool %s (call %s) ended after its timeout: %s",
                tool.name,
                ctx.tool_call_id,
                "failed" if late.exception() or getattr(late.result(), "error", None) else "done",
            )

    _left.add(work)
    work.add_done_callback(ended)
