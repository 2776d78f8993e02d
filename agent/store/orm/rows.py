"""From rows to values: which columns a value is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agent.domain.actor import Actor
from agent.domain.commands import UNSET
from agent.domain.ledger import ModelPrice, UsageEntry
from agent.domain.memories import Memory
from agent.domain.queue import QueuedMessage
from agent.domain.runs import Run
from agent.domain.snapshots import Message, StoredSummary, ThreadSummary, ToolCall, TurnMessage

Values = Mapping[str, Any]

PREVIEW = 120  # characters of the last message that lists show


def _columns(value: type, *but: str) -> tuple[str, ...]:
    return tuple(field.name for field in fields(value) if field.name not in but)


THREAD = _columns(ThreadSummary, "last_message_preview")
MESSAGE = _columns(Message, "approvals", "run_status")
TURN_MESSAGE = _columns(TurnMessage)
SUMMARY = _columns(StoredSummary)
TOOL_CALL = _columns(ToolCall)
MEMORY = _columns(Memory)
RUN = _columns(Run)
QUEUED = _columns(QueuedMessage)
USAGE = _columns(UsageEntry)
PRICE = _columns(ModelPrice)


def thread_summary(row: Values, preview: str | None = "") -> ThreadSummary:
    return ThreadSummary(**_picked(row, THREAD), last_message_preview=preview or "")


def message(row: Values) -> Message:
    return Message(**_picked(row, MESSAGE))


def tool_call(row: Values) -> ToolCall:
    return ToolCall(**_picked(row, TOOL_CALL))


def run(row: Values) -> Run:
    return Run(**{**_picked(row, RUN), "actor": Actor.from_json(row["actor"])})


def queued(row: Values) -> QueuedMessage:
    return QueuedMessage(**{**_picked(row, QUEUED), "actor": Actor.from_json(row["actor"])})


def usage(row: Values) -> UsageEntry:
    return UsageEntry(**_picked(row, USAGE))


def price(row: Values) -> ModelPrice:
    return ModelPrice(**_picked(row, PRICE))


def given(patch: Any) -> dict[str, Any]:  # noqa: ANN401 - any of our frozen patches
    """The fields of a patch that were given; None is given, `UNSET` is not."""
    named = {field.name: getattr(patch, field.name) for field in fields(patch)}
    return {name: value for name, value in named.items() if value is not UNSET}


def columns_of(value: Any, names: tuple[str, ...]) -> dict[str, Any]:  # noqa: ANN401 - any of our frozen values
    """A value as the row it came from."""
    return {name: getattr(value, name) for name in names}


def _picked(row: Values, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in names}
