"""OpenAI's Responses: items with ids, reasoning that is encrypted and must come back as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agent.domain.model_calls import ReplyCall, Usage
from agent.testing.contracts.provider import VendorAnswer
from tests.vendors.server import Body, Dialect, arguments, event, slices

INCOMPLETE = {"length": "max_output_tokens", "filtered": "content_filter"}


class OpenAIResponses(Dialect):
    """POST /v1/responses."""

    def __init__(self) -> None:
        self.encrypted: dict[str, str] = {}  # id of the reasoning item -> its encrypted content
        self._made = 0

    def speak(self, answer: VendorAnswer, body: Body) -> Iterator[bytes]:
        script = _Script(body)
        yield script.say("response.created", response=script.response("in_progress"))
        output: list[Body] = []
        if answer.reasoning:
            yield from self._reasoning(script, answer, output)
        if answer.text:
            yield from self._message(script, answer, output)
        for call in answer.calls:
            yield from self._call(script, call, output)
        if answer.ending == "end":
            yield script.closing(answer, output)

    def _new_id(self, kind: str) -> str:
        self._made += 1
        return f"{kind}_{self._made}"

    def _reasoning(self, script: _Script, answer: VendorAnswer, output: list[Body]) -> Iterator[bytes]:
        item = {"id": self._new_id("rs"), "type": "reasoning", "summary": []}
        at = {"output_index": len(output), "item_id": item["id"], "summary_index": 0}
        yield script.say("response.output_item.added", output_index=len(output), item=item)
        part = {"type": "summary_text", "text": ""}
        yield script.say("response.reasoning_summary_part.added", **at, part=part)
        for piece in answer.reasoning:
            yield script.say("response.reasoning_summary_text.delta", **at, delta=piece)
        whole = "".join(answer.reasoning)
        secret = f'gAAAA+/{self._made}=\u00e9"\\'
        self.encrypted[str(item["id"])] = secret
        done = {**item, "summary": [{"type": "summary_text", "text": whole}], "encrypted_content": secret}
        yield script.say("response.reasoning_summary_text.done", **at, text=whole)
        yield script.say("response.output_item.done", output_index=len(output), item=done)
        output.append(done)

    def _message(self, script: _Script, answer: VendorAnswer, output: list[Body]) -> Iterator[bytes]:
        item = {
            "id": self._new_id("msg"),
            "type": "message",
            "role": "assistant",
            "status": "in_progress",
            "content": [],
        }
        at = {"output_index": len(output), "item_id": item["id"], "content_index": 0}
        yield script.say("response.output_item.added", output_index=len(output), item=item)
        empty = {"type": "output_text", "text": "", "annotations": []}
        yield script.say("response.content_part.added", **at, part=empty)
        for piece in answer.text:
            yield script.say("response.output_text.delta", **at, delta=piece, logprobs=[])
        whole = {**empty, "text": "".join(answer.text)}
        yield script.say("response.output_text.done", **at, text=whole["text"], logprobs=[])
        yield script.say("response.content_part.done", **at, part=whole)
        done = {**item, "status": "completed", "content": [whole]}
        yield script.say("response.output_item.done", output_index=len(output), item=done)
        output.append(done)

    def _call(self, script: _Script, call: ReplyCall, output: list[Body]) -> Iterator[bytes]:
        text = arguments(call.input)
        item = {
            "id": self._new_id("fc"),
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": "",
        }
        at = {"output_index": len(output), "item_id": item["id"]}
        yield script.say("response.output_item.added", output_index=len(output), item={**item, "status": "in_progress"})
        for part in slices(text):
            yield script.say("response.function_call_arguments.delta", **at, delta=part)
        yield script.say("response.function_call_arguments.done", **at, arguments=text, name=call.name)
        done = {**item, "arguments": text, "status": "completed"}
        yield script.say("response.output_item.done", output_index=len(output), item=done)
        output.append(done)

    def refuse(self, status: int, text: str) -> bytes:
        return json.dumps({"error": {"message": text, "type": "error", "param": None, "code": None}}).encode()

    def complaint(self, body: Body) -> str | None:
        items = body["input"]
        calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
        results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
        if len(set(calls)) < len(calls):
            return "duplicate call_id"
        if sorted(calls) != sorted(results):
            return "No tool output found for function call"
        for item in items:
            if item.get("type") == "reasoning" and self.encrypted.get(item["id"]) != item["encrypted_content"]:
                return "The encrypted content could not be verified"
        return None


class _Script:
    """The events of one response, numbered."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._number = -1

    def say(self, kind: str, **fields: object) -> bytes:
        self._number += 1
        return event({"type": kind, "sequence_number": self._number, **fields}, kind)

    def closing(self, answer: VendorAnswer, output: list[Body]) -> bytes:
        usage = usage_of(answer.usage) if answer.usage else None
        if reason := INCOMPLETE.get(answer.stop):
            response = self.response("incomplete", output, usage)
            return self.say("response.incomplete", response={**response, "incomplete_details": {"reason": reason}})
        return self.say("response.completed", response=self.response("completed", output, usage))

    def response(self, status: str, output: list[Body] | None = None, usage: Body | None = None) -> Body:
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1790000000,
            "model": f"{self._body['model']}-2026-01-01",
            "status": status,
            "output": output or [],
            "usage": usage,
            "error": None,
            "incomplete_details": None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }


def usage_of(usage: Usage) -> Body:
    """Our counts as this vendor says them: the cached part is within the input."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens or 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
