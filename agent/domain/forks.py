"""Pure rules of a fork: what of a conversation is copied, and how the copies point to each other (spec 02 §4.12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from agent.domain.snapshots import JsonList, Message, ToolCall
from agent.domain.states import OPEN_TOOL_CALL, ToolCallStatus

LEFT_OPEN = "left open where the conversation was forked"


def copied_part(messages: Sequence[Message], from_message_id: str) -> Sequence[Message]:
    """The messages up to and including the named one; all of them when it is none of these."""
    for place, message in enumerate(messages, start=1):
        if message.id == from_message_id:
            return messages[:place]
    return messages


def message_copy(message: Message, *, id: str, thread_id: str, seq: int, call_ids: Mapping[str, str]) -> Message:  # noqa: A002
    """A message of the fork: everything but the feedback, its calls under their new ids."""
    return replace(
        message,
        id=id,
        thread_id=thread_id,
        seq=seq,
        tool_calls=_renamed(message.tool_calls, call_ids),
        tool_results=_renamed(message.tool_results, call_ids),
        ui=None if message.ui is None else [rewritten(item, call_ids) for item in message.ui],
        feedback=None,
        approvals=None,
    )


def call_copy(
    call: ToolCall,
    *,
    thread_id: str,
    message_ids: Mapping[str, str],
    call_ids: Mapping[str, str],
    now: datetime,
) -> ToolCall:
    """A call of the fork: it belongs to no run, and nobody can decide it any more."""
    copy = replace(
        call,
        id=call_ids[call.id],
        thread_id=thread_id,
        message_id=message_ids[call.message_id],
        run_id=None,
        origin_call_id=call.id,
        parent_call_id=_mapped(call.parent_call_id, call_ids),
    )
    if call.status in OPEN_TOOL_CALL:
        return replace(copy, status=ToolCallStatus.FAILED.value, error=LEFT_OPEN, settled_at=now)
    if call.status == ToolCallStatus.PROPOSED:
        return replace(copy, proposal_id=None)
    return copy


def in_call_order(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """The calls in the order in which their copies get ids."""
    return sorted(calls, key=lambda call: call.id)


def rewritten(value: Any, ids: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    """The same JSON with every text that is an old id replaced by the new one, at any depth."""
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, list):
        return [rewritten(item, ids) for item in value]
    if isinstance(value, dict):
        return {key: rewritten(item, ids) for key, item in value.items()}
    return value


def _renamed(items: JsonList | None, ids: Mapping[str, str]) -> JsonList | None:
    """The provider's own id, the input and the output may hold anything: only `id` names a call of ours."""
    if items is None:
        return None
    return [{**item, "id": _mapped(item["id"], ids)} if "id" in item else item for item in items]


def _mapped(call_id: Any, ids: Mapping[str, str]) -> Any:  # noqa: ANN401 - an id as some JSON holds it, or none
    return ids.get(call_id, call_id) if isinstance(call_id, str) else call_id
