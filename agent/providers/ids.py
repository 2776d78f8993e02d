"""Provider call ids that tell calls apart, although some models say `call_0` in every turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent.domain.model_calls import ReplyCall, ShownMessage


def used_ids(messages: Iterable[ShownMessage]) -> set[str]:
    """The call ids that a transcript holds."""
    return {call.id for message in messages for call in message.tool_calls}


def unique_id(wanted: str, used: set[str]) -> str:
    """The wanted id, or with the suffix -2, -3 ... the first that is free; it is used from now on."""
    free, number = wanted, 1
    while free in used:
        number += 1
        free = f"{wanted}-{number}"
    used.add(free)
    return free


def with_unique_ids(calls: Sequence[ReplyCall], used: set[str]) -> tuple[ReplyCall, ...]:
    """The calls in order, each under an id of its own."""
    return tuple(replace(call, id=unique_id(call.id, used)) for call in calls)
