"""What only the vendor understands: kept as text beside the message, and put back for the same vendor.

The text holds no answer and no arguments (the message has them): the order of the parts, and what belongs to each,
such as signed or encrypted reasoning and the vendor's item ids. Strings come back exactly as they came.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse

from agent.domain.arguments import raw_text
from agent.domain.model_calls import Json, ShownCall, ShownMessage
from agent.providers._library.clients import LibraryModel

VERSION = 1
MESSAGE_HAS_IT = {"text": ("content",), "tool-call": ("tool_name", "args", "tool_call_id")}
TAGGED_THINKING = "content"  # the id of thinking that was cut out of the text

logger = logging.getLogger(__name__)


def dump(response: ModelResponse) -> str | None:
    """The opaque side of an answer as ASCII text; None when it has none."""
    parts = [_opaque(part) for part in _dumped_parts(response)]
    kept = [part for part in parts if part is not None]
    if not any(part.keys() - {"part_kind", "length"} for part in kept):
        return None
    state = {
        "v": VERSION,
        "provider": response.provider_name,
        "system": response.canonical_system,
        "url": _without_credentials(response.provider_url),
        "model": response.model_name,
        "response": response.provider_response_id,
        "digest": _digest("".join(part.content for part in response.parts if part.part_kind == "text")),
        "parts": kept,
    }
    return json.dumps({key: value for key, value in state.items() if value is not None}, separators=(",", ":"))


def restore(message: ShownMessage, model: LibraryModel) -> ModelResponse | None:
    """The earlier answer with its opaque parts; None when there are none for this vendor."""
    if message.provider_state is None:
        return None
    try:
        state = json.loads(message.provider_state)
        if state["v"] != VERSION or state["provider"] != model.system:
            return None
        return _response(state, _filled(state, message))
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        logger.warning("Provider state that cannot be read is left out: %s", type(error).__name__)
        return None


def call_part(call: ShownCall) -> dict[str, Json]:
    """A call as the library stores it; malformed arguments go back as the text they were."""
    raw = raw_text(call.input)
    arguments = call.input if isinstance(call.input, dict) else json.dumps(call.input)
    return {
        "part_kind": "tool-call",
        "tool_name": call.name,
        "args": arguments if raw is None else raw,
        "tool_call_id": call.id,
    }


def _dumped_parts(response: ModelResponse) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = ModelMessagesTypeAdapter.dump_python([response], mode="json")[0]["parts"]
    return parts


def _opaque(part: dict[str, Any]) -> dict[str, Any] | None:
    kind = part["part_kind"]
    left_out = MESSAGE_HAS_IT.get(kind, ())
    kept = {key: value for key, value in part.items() if value is not None and key not in left_out}
    if kind == "text":
        kept["length"] = len(part["content"])
    if kind == "thinking" and not kept.keys() & {"signature", "provider_details"}:
        return None if kept.get("id") in (None, TAGGED_THINKING) else kept
    return kept


def _filled(state: dict[str, Any], message: ShownMessage) -> list[dict[str, Any]]:
    """The parts with the words and calls of the message put back, whatever has become of them since."""
    parts = state["parts"]
    same_calls = sum(part["part_kind"] == "tool-call" for part in parts) == len(message.tool_calls)
    if same_calls and state["digest"] == _digest(message.content):
        return list(_unchanged(parts, message))
    signed = [part for part in parts if part["part_kind"] == "thinking" and "signature" in part and "id" not in part]
    text = [{"part_kind": "text", "content": message.content}] if message.content else []
    return [*signed, *text, *map(call_part, message.tool_calls)]


def _unchanged(parts: list[dict[str, Any]], message: ShownMessage) -> Iterator[dict[str, Any]]:
    start, calls = 0, iter(message.tool_calls)
    for part in parts:
        if part["part_kind"] == "text":
            end = start + part["length"]
            own = {key: value for key, value in part.items() if key != "length"}
            yield {**own, "content": message.content[start:end]}
            start = end
        elif part["part_kind"] == "tool-call":
            yield {**part, **call_part(next(calls))}
        else:
            yield part


def _response(state: dict[str, Any], parts: list[dict[str, Any]]) -> ModelResponse:
    stored = {
        "kind": "response",
        "parts": parts,
        "provider_name": state["provider"],
        "canonical_system": state.get("system"),
        "provider_url": state.get("url"),
        "model_name": state.get("model"),
        "provider_response_id": state.get("response"),
    }
    (response,) = ModelMessagesTypeAdapter.validate_json(json.dumps([stored]))
    if not isinstance(response, ModelResponse):
        raise TypeError("not a response")
    return response


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _without_credentials(url: str | None) -> str | None:
    if url is None or "@" not in url:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
