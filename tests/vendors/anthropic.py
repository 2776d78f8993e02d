"""Anthropic's Messages, with thinking that is signed and whose signature must come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agent.domain.model_calls import Usage
from agent.testing.contracts.provider import VendorAnswer
from tests.vendors.server import Body, Dialect, arguments, event, slices

STOP = {"end": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "filtered": "refusal"}
ERRORS = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class Anthropic(Dialect):
    """POST /v1/messages."""

    def __init__(self) -> None:
        self.signed: dict[str, str] = {}  # signature -> the thinking it belongs to

    def speak(self, answer: VendorAnswer, body: Body) -> Iterator[bytes]:
        usage = usage_of(answer.usage or Usage())
        yield start(body, usage)
        yield event({"type": "ping"}, "ping")
        for index, block in enumerate(self._blocks(answer)):
            opening, deltas = block
            yield event(
                {"type": "content_block_start", "index": index, "content_block": opening}, "content_block_start"
            )
            for delta in deltas:
                data = {"type": "content_block_delta", "index": index, "delta": delta}
                yield event(data, "content_block_delta")
            if answer.ending == "end":
                yield event({"type": "content_block_stop", "index": index}, "content_block_stop")
        if answer.ending == "end":
            yield from finish(STOP[answer.stop], usage)

    def _blocks(self, answer: VendorAnswer) -> Iterator[tuple[Body, list[Body]]]:
        if answer.reasoning:
            signature = self.sign("".join(answer.reasoning))
            thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in answer.reasoning]
            yield (
                {"type": "thinking", "thinking": "", "signature": ""},
                [*thoughts, {"type": "signature_delta", "signature": signature}],
            )
        if answer.text:
            yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in answer.text]
        for call in answer.calls:
            parts = [{"type": "input_json_delta", "partial_json": part} for part in slices(arguments(call.input))]
            yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, parts

    def sign(self, thinking: str) -> str:
        signature = f'EqQB+Sig/{len(self.signed)}==\u00e9"\\/'
        self.signed[signature] = thinking
        return signature

    def refuse(self, status: int, text: str) -> bytes:
        error = {"type": ERRORS.get(status, "api_error"), "message": text}
        return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()

    def complaint(self, body: Body) -> str | None:
        if not isinstance(body.get("max_tokens"), int):
            return "max_tokens: field required"
        messages: list[Body] = body["messages"]
        if messages[0]["role"] != "user":
            return "messages: first message must use the user role"
        blocks = [_blocks(message) for message in messages]
        for own, following in zip(blocks, [*blocks[1:], []], strict=True):
            if complaint := self._blocks_complaint(own, following):
                return complaint
        return None

    def _blocks_complaint(self, blocks: list[Body], following: list[Body]) -> str | None:
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [block.get("tool_use_id") for block in following[: len(calls)]]
        if calls and sorted(map(str, results)) != sorted(calls):
            return "tool_use ids were found without tool_result blocks immediately after, in one message"
        for block in blocks:
            if block["type"] == "text" and not block["text"].strip():
                return "text content blocks must be non-empty"
            if block["type"] == "thinking" and self.signed.get(block["signature"]) != block["thinking"]:
                return "Invalid `signature` in `thinking` block"
        return None


def _blocks(message: Body) -> list[Any]:
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content)


def start(body: Body, usage: Body) -> bytes:
    """The event that opens an answer; it says the input already."""
    message: Body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": f"{body['model']}-20260101",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    return event({"type": "message_start", "message": message}, "message_start")


def finish(reason: str, usage: Body) -> Iterator[bytes]:
    """The two events that close an answer."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    output = {"output_tokens": usage["output_tokens"]}
    yield event({"type": "message_delta", "delta": delta, "usage": output}, "message_delta")
    yield event({"type": "message_stop"}, "message_stop")


def usage_of(usage: Usage) -> Body:
    """Our counts as this vendor says them: the cached parts are beside the input, not within it."""
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    hour = usage.cache_write_1h_tokens or 0
    return {
        "input_tokens": usage.input_tokens - read - written,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour},
        "output_tokens": usage.output_tokens,
        "service_tier": "standard",
    }
