"""A tool on its way through a turn: offered to the model, admitted when it is called, executed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from pydantic import BaseModel

from agent.conf import agent_settings
from agent.db import in_db, in_tool, is_transient
from agent.domain import frames
from agent.domain.model_calls import Frame, Json, ToolSpec
from agent.domain.redaction import redact, redacted_trace
from agent.domain.text import clean_text
from agent.errors import ToolError
from agent.flows.gates import asks_host, listed, open_tools
from agent.flows.outputs import NotJson, as_json
from agent.flows.reads import ReadOnly
from agent.registry import AgentDefinition, InvalidInput, OfferContext, Presentation, ToolContext, ToolDefinition

log = logging.getLogger("agent.tools")

ATTEMPTS = 2  # of a body that a transient database error stops
PAUSE_SECONDS = 0.15
SHOWN_NAME = 64

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
    ms: int = 0
    ui: tuple[dict[str, Json], ...] = ()
    text: str | None = None


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
    work = asyncio.ensure_future(_attempts(tool, arguments, told, pause))
    timeout = tool.timeout if tool.timeout is not None else agent_settings().tool_timeout_seconds
    try:
        done, _ = await asyncio.wait({work}, timeout=timeout)
    except asyncio.CancelledError:
        work.cancel()  # the worker itself stops: nothing is left running behind it
        raise
    finally:
        shown.close()
    if done:
        result = _outcome(work, tool, ctx)
    else:
        _leave(work, tool, ctx)
        result = _failed("tool_timeout", f'The tool "{tool.name}" did not answer within {timeout:g} seconds.')
    return replace(result, ms=round((time.monotonic() - started) * 1000), ui=shown.components(result.ui))


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


async def _attempts(tool: ToolDefinition, arguments: BaseModel, ctx: ToolContext, pause: Pause) -> ToolResult:
    for attempt in range(1, ATTEMPTS + 1):
        ended = await _body(tool, arguments, ctx)
        if isinstance(ended, ToolResult):
            return ended
        if not is_transient(ended) or attempt == ATTEMPTS:
            return _raised(ended, tool, ctx)
        log.info("Tool %s (call %s) met a busy database and is tried again.", tool.name, ctx.tool_call_id)
        await pause(PAUSE_SECONDS * attempt)
    raise AssertionError("unreachable")


async def _body(tool: ToolDefinition, arguments: BaseModel, ctx: ToolContext) -> ToolResult | BaseException:
    """One attempt. What it raises is a value here: an exception would not cross every thread and future unharmed."""
    if tool.runs_async:
        return await _awaited(tool, arguments, partial(tool.call, arguments, ctx), ctx)
    ended = await in_tool(_called, tool, arguments, ctx)
    if isinstance(ended, _Later):  # a plain function that answers a coroutine
        return await _awaited(tool, arguments, lambda: ended.value, ctx)
    return ended


class _Later(NamedTuple):
    value: Awaitable[object]


def _called(tool: ToolDefinition, arguments: BaseModel, ctx: ToolContext) -> ToolResult | BaseException | _Later:
    try:
        answer = tool.call(arguments, ctx)
        if isinstance(answer, Awaitable):
            return _Later(answer)
        return _succeeded(tool, arguments, answer, ctx)
    except BaseException as error:
        return _unless_signal(error)


async def _awaited(
    tool: ToolDefinition, arguments: BaseModel, start: Callable[[], object], ctx: ToolContext
) -> ToolResult | BaseException:
    try:
        answer = start()
        if isinstance(answer, Awaitable):
            answer = await answer
        return _succeeded(tool, arguments, answer, ctx)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return _unless_signal(error)


def _unless_signal(error: BaseException) -> BaseException:
    if getattr(error, "agent_signal", False):
        raise error
    return error


def _succeeded(tool: ToolDefinition, arguments: BaseModel, answer: object, ctx: ToolContext) -> ToolResult:
    try:
        output = as_json(answer)
    except NotJson as error:
        return _failed("output_not_json", f'The answer of the tool "{tool.name}" cannot be written as JSON: {error}.')
    shown = _presented(tool, arguments, answer, ctx)
    ui = tuple(_component(each, ctx) for each in shown.ui)
    return ToolResult(output=output, text=shown.text, ui=ui)


def _presented(tool: ToolDefinition, arguments: BaseModel, answer: object, ctx: ToolContext) -> Presentation:
    """How the tool wants it shown; a presentation that fails takes nothing from the result."""
    if tool.present is None:
        return Presentation()
    try:
        shown = tool.present(arguments, answer) or Presentation()
        return Presentation(shown.text, [as_json(dict(each)) for each in shown.ui])
    except Exception as error:
        _unless_signal(error)
        log.warning(
            "The presentation of tool %s (call %s) failed: %s", tool.name, ctx.tool_call_id, redacted_trace(error)
        )
        return Presentation()


def _component(component: object, ctx: ToolContext) -> dict[str, Json]:
    given = dict(component) if isinstance(component, dict) else {}
    default = f"{ctx.tool_call_id}:{given.get('component', 'ui')}"
    return {"id": default, **given, "toolCallId": ctx.tool_call_id}


def _outcome(work: asyncio.Future[ToolResult], tool: ToolDefinition, ctx: ToolContext) -> ToolResult:
    """The body's result; one that cancelled itself has failed like any other."""
    if work.cancelled():
        return _raised(asyncio.CancelledError("the tool cancelled itself"), tool, ctx)
    return work.result()


def _raised(error: BaseException, tool: ToolDefinition, ctx: ToolContext) -> ToolResult:
    """A ToolError speaks to the model; of anything else the model learns only that it happened."""
    if isinstance(error, ToolError):
        return _failed(error.code, error.message)
    log.error("Tool %s (call %s) failed: %s", tool.name, ctx.tool_call_id, redacted_trace(error))
    message = f'The tool "{tool.name}" failed unexpectedly. Nothing more is known of it.'
    return replace(_failed("tool_failed", message), detail=redact(f"{type(error).__name__}: {error}"))


def _failed(code: str, message: str) -> ToolResult:
    return ToolResult(error=message, error_code=code)


_left: set[asyncio.Future[ToolResult]] = set()  # a task that nobody holds may vanish in mid-work


def _leave(work: asyncio.Future[ToolResult], tool: ToolDefinition, ctx: ToolContext) -> None:
    """Nobody waits any more, and nobody kills the work; how it ends is in the log."""

    def ended(late: asyncio.Future[ToolResult]) -> None:
        _left.discard(late)
        if not late.cancelled():
            log.warning(
                "Tool %s (call %s) ended after its timeout: %s",
                tool.name,
                ctx.tool_call_id,
                "failed" if late.exception() or late.result().error else "done",
            )

    _left.add(work)
    work.add_done_callback(ended)
