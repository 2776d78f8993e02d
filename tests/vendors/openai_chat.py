"""OpenAI's Chat Completions, as OpenAI and the servers compatible with it stream them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator

from agent.domain.model_calls import ReplyCall, Usage
from agent.testing.contracts.provider import VendorAnswer
from tests.vendors.server import Body, Dialect, arguments, event, slices

FINISH = {"end": "stop", "tool_calls": "tool_calls", "length": "length", "filtered": "content_filter"}


class OpenAIChat(Dialect):
    """POST /v1/chat/completions."""

    def speak(self, answer: VendorAnswer, body: Body) -> Iterator[bytes]:
        yield chunk({"role": "assistant", "content": ""}, body)
        for piece in answer.reasoning:
            yield chunk({"reasoning_content": piece}, body)
        for piece in answer.text:
            yield chunk({"content": piece}, body)
        for delta in _call_deltas(answer.calls):
            yield chunk({"tool_calls": [delta]}, body)
        if answer.ending == "end":
            yield chunk({}, body, finish=FINISH[answer.stop])
            if answer.usage and body.get("stream_options", {}).get("include_usage"):
                yield usage_chunk(usage_of(answer.usage), body)
            yield b"data: [DONE]\n\n"

    def refuse(self, status: int, text: str) -> bytes:
        return json.dumps({"error": {"message": text, "type": "error", "param": None, "code": None}}).encode()

    def complaint(self, body: Body) -> str | None:
        messages = body["messages"]
        known: set[str] = set()
        for index, message in enumerate(messages):
            calls = [call["id"] for call in message.get("tool_calls") or []]
            if message["role"] == "assistant" and not calls and not message.get("content"):
                return f"messages[{index}]: an assistant message needs content or tool_calls"
            if known.intersection(calls) or len(set(calls)) < len(calls):
                return f"messages[{index}]: tool call ids repeat"
            known.update(calls)
            results = messages[index + 1 : index + 1 + len(calls)]
            if [result.get("tool_call_id") for result in results] != calls:
                return f"messages[{index}]: tool_calls must be followed by tool messages for each of them"
        return None


def chunk(delta: Body, body: Body, *, finish: str | None = None) -> bytes:
    """One streamed piece of an answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event(_frame(body, choices=[choice]))


def usage_chunk(usage: Body, body: Body) -> bytes:
    """The last chunk, without choices."""
    return event(_frame(body, choices=[], usage=usage))


def usage_of(usage: Usage) -> Body:
    """Our counts as this vendor says them: the cached part is within the prompt."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens or 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _frame(body: Body, **fields: object) -> Body:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1790000000,
        "model": f"{body['model']}-2026-01-01",
        **fields,
    }


def _call_deltas(calls: Iterable[ReplyCall]) -> Iterator[Body]:
    """The arguments of parallel calls, interleaved."""
    streams = []
    for index, call in enumerate(calls):
        yield {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        streams.append([{"index": index, "function": {"arguments": part}} for part in slices(arguments(call.input))])
    for row in itertools.zip_longest(*streams):
        yield from (delta for delta in row if delta is not None)
