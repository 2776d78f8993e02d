"""What the library streams, in our frames, and the reply at its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.usage import RequestUsage

from agent.domain.arguments import kept_arguments, read_arguments
from agent.domain.model_calls import FrameEmitter, Json, Reply, ReplyCall, Stop, Usage
from agent.providers._library.state import dump
from agent.providers.ids import unique_id

STOPS: dict[str, Stop] = {"stop": "end", "length": "length", "tool_call": "tool_calls", "content_filter": "filtered"}
Arguments = str | Mapping[str, object] | None
BETWEEN_THOUGHTS = "\n\n"


@dataclass(slots=True)
class Transcriber:
    """Turns the events of one answer into frames, and remembers what was said."""

    emit: FrameEmitter
    used: set[str]  # the call ids of the transcript; those of this answer are added
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    ids: dict[int, str] = field(default_factory=dict)  # index of the part -> the call id under which it was announced

    def feed(self, event: ModelResponseStreamEvent) -> None:
        """Emit what this event adds."""
        if isinstance(event, PartStartEvent):
            self._start(event)
        elif isinstance(event, PartDeltaEvent):
            self._delta(event)

    def _start(self, event: PartStartEvent) -> None:
        part = event.part
        if isinstance(part, TextPart):
            self._say(part.content)
        elif isinstance(part, ThinkingPart):
            self._think((BETWEEN_THOUGHTS if self.reasoning and part.content else "") + part.content)
        elif isinstance(part, ToolCallPart):
            if event.index not in self.ids:
                call_id = self.ids[event.index] = unique_id(part.tool_call_id, self.used)
                self.emit({"kind": "tool-input-start", "id": call_id, "name": part.tool_name})
            self._argue(event.index, part.args)

    def _delta(self, event: PartDeltaEvent) -> None:
        delta = event.delta
        if isinstance(delta, TextPartDelta):
            self._say(delta.content_delta)
        elif isinstance(delta, ThinkingPartDelta):
            self._think(delta.content_delta or "")
        elif isinstance(delta, ToolCallPartDelta):
            self._argue(event.index, delta.args_delta)

    def _say(self, text: str) -> None:
        if text:
            self.text.append(text)
            self.emit({"kind": "text", "text": text})

    def _think(self, text: str) -> None:
        if text:
            self.reasoning.append(text)
            self.emit({"kind": "reasoning", "text": text})

    def _argue(self, index: int, arguments: Arguments) -> None:
        if arguments and index in self.ids:
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            self.emit({"kind": "tool-input-delta", "id": self.ids[index], "delta": text})

    def finish(self, response: ModelResponse) -> Reply:
        """Give the calls whole, and the reply."""
        calls = [
            ReplyCall(id=self.ids[index], name=part.tool_name, input=_input(part.args))
            for index, part in enumerate(response.parts)
            if isinstance(part, ToolCallPart) and index in self.ids
        ]
        for call in calls:
            self.emit({"kind": "tool-input-available", "id": call.id, "name": call.name, "input": call.input})
        if not self.text and not calls:
            self._say(str((response.provider_details or {}).get("refusal") or ""))
        return Reply(
            text="".join(self.text),
            tool_calls=calls,
            usage=usage(response),
            stop=_stop(response, calls),
            model_id=response.model_name,
            reasoning="".join(self.reasoning) or None,
            provider_state=dump(response),
        )


def cut_off(response: ModelResponse, *, says_why: bool) -> bool:
    """Whether the stream ended without its end: the vendor never said why it stopped.

    `says_why`: the library fills in a finish reason for this vendor, so only the vendor's own word counts.
    """
    details = response.provider_details or {}
    if details.get("finish_reason") or details.get("refusal"):
        return False
    return says_why or response.finish_reason is None or response.state != "complete"


def usage(response: ModelResponse) -> Usage | None:
    """The counts as reported; None when the vendor said nothing."""
    said = response.usage
    cost = _reported_cost(response)
    if not said.has_values() and (said.unmeasured_requests or response.state != "complete") and cost is None:
        return None
    return Usage(
        input_tokens=said.input_tokens,
        output_tokens=said.output_tokens,
        cache_write_tokens=_count(said, "cache_write_tokens", "cache_creation_input_tokens"),
        cache_write_1h_tokens=said.cache_write_1h_tokens or None,
        cache_read_tokens=_count(said, "cache_read_tokens", "cache_read_input_tokens"),
        reported_cost_usd=cost,
    )


def _count(said: RequestUsage, name: str, detail: str) -> int | None:
    """The library counts 0 for what a vendor did not say."""
    count: int = getattr(said, name)
    return count or (0 if detail in said.details else None)


def _reported_cost(response: ModelResponse) -> Decimal | None:
    """The price as the vendor says it (a gateway, OpenRouter); the library's own estimate is made elsewhere."""
    cost = response.usage.cost
    if cost is not None:
        return cost
    told = (response.provider_details or {}).get("cost")
    try:
        cost = Decimal(str(told))
    except InvalidOperation:
        return None
    return cost if cost.is_finite() and cost >= 0 else None


def _stop(response: ModelResponse, calls: list[ReplyCall]) -> Stop:
    stop = STOPS.get(response.finish_reason or "", "end")
    return "tool_calls" if calls and stop == "end" else stop


def _input(arguments: Arguments) -> Json:
    if not arguments:
        return {}
    return read_arguments(arguments) if isinstance(arguments, str) else kept_arguments(dict(arguments))
