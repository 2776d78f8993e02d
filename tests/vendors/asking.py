"""How the tests of vendors ask: one loop a question, as a short-lived process would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from agent.domain.model_calls import (
    Frame,
    Json,
    ModelRequest,
    Reply,
    ReplyCall,
    ShownCall,
    ShownMessage,
    ShownResult,
    ToolSpec,
    Usage,
)
from agent.spi import ModelProvider

USAGE = Usage(input_tokens=40, output_tokens=12)
QUESTION = ShownMessage(role="user", content="Where is order 1042?")
LOOKUP = ToolSpec(
    name="lookup_order",
    description="Find an order of the shop.",
    schema={"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
)


def request(*messages: ShownMessage, **fields: Json) -> ModelRequest:
    """A request with a system text and one tool."""
    return replace(
        ModelRequest(system="You help the desk.", messages=messages or (QUESTION,), tools=(LOOKUP,)), **fields
    )


def ask(
    provider: ModelProvider, *messages: ShownMessage, emit: Callable[[Frame], None] | None = None, **fields: Json
) -> Reply:
    """One call, to its end."""

    async def call() -> Reply:
        return await provider.stream(request(*messages, **fields), emit or _ignored)

    return asyncio.run(call())


def _ignored(frame: Frame) -> None:
    pass


def lookup(number: int, call_id: str = "call_1") -> ReplyCall:
    """A planned call of the one tool."""
    return ReplyCall(id=call_id, name="lookup_order", input={"number": number})


def answered(reply: Reply, *outputs: Json, failed: bool = False, **changes: Json) -> ShownMessage:
    """The reply as the transcript shows it later, its calls with these outputs."""
    message = ShownMessage(
        role="assistant",
        content=reply.text,
        tool_calls=tuple(ShownCall(id=call.id, name=call.name, input=call.input) for call in reply.tool_calls),
        tool_results=tuple(
            ShownResult(id=call.id, name=call.name, output=output, failed=failed)
            for call, output in zip(reply.tool_calls, outputs, strict=True)
        ),
        provider_state=reply.provider_state,
    )
    return replace(message, **changes)
