"""Spans of OpenTelemetry around what a run really does (spec 03 §11), where the library is installed (extra `otel`).

Attributes are those of the GenAI semantic conventions; what they have no word for begins with `agent.`. No span and no
attribute holds a text of a person, a model or a tool, nor what an exception says. They are opened around the bodies of
effects alone, so a replay opens none. All spans of a run are in the trace whose id is the run's.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from uuid import UUID

from agent.domain.runs import Run
from agent.domain.states import TokensSource
from agent.errors import Cancelled, ModelError
from agent.flows.model_call import Answer, ModelCall
from agent.flows.tools import ToolResult

try:
    from opentelemetry import trace
    from opentelemetry.context import Context
except ImportError:
    INSTALLED = False
else:
    INSTALLED = True

T = TypeVar("T")
Attributes = dict[str, str | bool | int | list[str]]

LLM: Final = "llm.turn"
TOOL: Final = "tool.execution"
FOLLOW_UPS: Final = "follow-ups"
STRUCTURED: Final = "structured-output"
SPAN_ID: Final = (1 << 64) - 1
FINISH: Final = {"end": "stop", "tool_calls": "tool_call", "length": "length", "filtered": "content_filter"}
# Vendors by the prefix that our provider's model names have -> as the conventions call them.
VENDORS: Final = {
    "openai": "openai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "grok": "x_ai",
    "groq": "groq",
    "mistral": "mistral_ai",
}


async def answered(run: Run, call: ModelCall, *, provider: str) -> Answer:
    """The answer of a model call; one span for all its tries."""
    if not _recorded():
        return await call.run()
    with _span(LLM, run, trace.SpanKind.CLIENT, _asked(call, provider)) as span:
        answer = await call.run()
        if span.is_recording():
            span.set_attributes(_answer(answer))
        return answer


async def around(run: Run, name: str, work: Awaitable[T]) -> T:
    """What the work comes to, within a span of this name."""
    if not _recorded():
        return await work
    with _span(name, run, trace.SpanKind.INTERNAL, {}):
        return await work


async def executed(run: Run, call: Mapping[str, Any], work: Awaitable[ToolResult]) -> ToolResult:
    """The result of a tool's body."""
    if not _recorded():
        return await work
    told: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call["name"],
        "gen_ai.tool.call.id": call["id"],
        "gen_ai.tool.type": "function",
    }
    with _span(TOOL, run, trace.SpanKind.INTERNAL, told) as span:
        result = await work
        if result.error is not None:
            _fail(span, result.error_code or "tool_failed")
        return result


def trace_id(run_id: str) -> int:
    """The trace of a run: its id without the dashes, read as a number."""
    try:
        number = UUID(run_id).int
    except ValueError:  # a store with ids of its own
        number = int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:16])
    return number or 1


def _recorded() -> bool:
    """Whether the library is there and somebody has told it where spans go."""
    return INSTALLED and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@contextmanager
def _span(name: str, run: Run, kind: trace.SpanKind, told: Attributes) -> Iterator[trace.Span]:
    """A span in the run's trace, linked to what was going on when the run was handed over."""
    handed = trace.get_current_span().get_span_context()
    span = _tracer().start_as_current_span(
        name,
        context=_context(run.id),
        kind=kind,
        attributes={**_of_run(run), **told},
        links=[trace.Link(handed)] if handed.is_valid else [],
        record_exception=False,  # what it says may be anybody's text
        set_status_on_exception=False,
    )
    with span as opened:
        try:
            yield opened
        except (Cancelled, asyncio.CancelledError) as stopped:
            opened.set_attribute("agent.outcome", "cancelled" if isinstance(stopped, Cancelled) else "released")
            raise
        except Exception as error:
            _fail(opened, _error_type(error))
            raise


def _tracer() -> trace.Tracer:
    return trace.get_tracer("agent")


def _context(run_id: str) -> Context:
    """A parent that nobody sees: the way to give a span the trace that it belongs to."""
    number = trace_id(run_id)
    parent = trace.SpanContext(
        trace_id=number,
        span_id=number & SPAN_ID or 1,
        is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(parent))


def _of_run(run: Run) -> Attributes:
    named = {"gen_ai.agent.name": run.agent_name, "gen_ai.conversation.id": run.thread_id, "agent.run.id": run.id}
    return {name: value for name, value in named.items() if value is not None}


def _asked(call: ModelCall, provider: str) -> Attributes:
    asked = call.request.model or call.model_id
    vendor = VENDORS.get(asked.partition(":")[0]) if ":" in asked else None
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": vendor or provider,
        "gen_ai.request.model": _own_name(asked),
        "gen_ai.request.stream": True,
        "agent.step": call.key,
        "agent.purpose": call.request.purpose,
    }


def _answer(answer: Answer) -> Attributes:
    counted, usage = answer.counted, answer.counted.usage
    told: Attributes = {
        "gen_ai.response.model": _own_name(answer.model_id),
        "gen_ai.response.finish_reasons": [FINISH.get(answer.reply.stop, answer.reply.stop)],
        "agent.tokens_source": str(counted.source),
        "agent.tries": len(answer.broken) + 1,
    }
    if counted.source != TokensSource.MISSING:
        counts = {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        }
        told |= {name: count for name, count in counts.items() if count is not None}
    return told


def _own_name(model: str) -> str:
    """The vendor's own name of a model."""
    prefix, _, rest = model.partition(":")
    return rest if rest and prefix in VENDORS else model


def _error_type(error: Exception) -> str:
    if isinstance(error, ModelError) and error.status is not None:
        return str(error.status)
    return type(error).__qualname__


def _fail(span: trace.Span, error_type: str) -> None:
    span.set_attribute("error.type", error_type)
    span.set_status(trace.StatusCode.ERROR)
