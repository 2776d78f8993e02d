"""Messages that wait until their thread is idle, and what holds them back (spec 06)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from agent.domain.actor import Actor, Owner
from agent.domain.clock import wire_time
from agent.domain.commands import UNSET, Unset
from agent.domain.snapshots import JsonList


class PauseReason(StrEnum):
    RUN_FAILED = "run_failed"
    CANCELLED = "cancelled"
    QUOTA_EXCEEDED = "quota_exceeded"
    START_FAILED = "start_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePause:
    """Why nothing of a queue starts by itself; it holds the queue, not the thread. `at` is written as on the wire."""

    reason: str
    at: str
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        told = {} if self.message is None else {"message": self.message}
        return {"reason": self.reason, **told, "at": self.at}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> QueuePause:
        return cls(reason=value["reason"], at=value["at"], message=value.get("message"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQueuedMessage:
    """A send that has to wait, with everything that its run will need; `id` None = the store gives one."""

    thread_id: str
    actor: Actor
    content: str
    id: str | None = None
    attachments: JsonList | None = None
    agent_name: str | None = None
    persona: str | None = None
    model: str | None = None
    page_context: dict[str, Any] | None = None
    ui_capabilities: dict[str, Any] | None = None
    host_context: dict[str, Any] | None = None
    interrupt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedMessage:
    """A waiting message; its id becomes the id of its run. `position` only orders, it is no place in a list."""

    id: str
    thread_id: str
    actor: Actor
    content: str
    attachments: JsonList | None
    agent_name: str | None
    persona: str | None
    model: str | None
    page_context: dict[str, Any] | None
    ui_capabilities: dict[str, Any] | None
    host_context: dict[str, Any] | None
    interrupt: bool
    position: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedPatch:
    """Attachments None are dropped."""

    content: str | Unset = UNSET
    attachments: JsonList | None | Unset = UNSET
    interrupt: bool | Unset = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadHold:
    """What decides whether a thread is told more: whose it is, the run that holds it, the pause of its queue."""

    run_id: str | None
    pause: QueuePause | None
    owner: Owner | None = None  # where the row was read


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """A thread's queue as its owner sees it."""

    items: tuple[QueuedMessage, ...]  # the next one first
    paused: QueuePause | None

    def to_json(self) -> dict[str, Any]:
        return {
            "items": [_shown(item, place) for place, item in enumerate(self.items)],
            "paused": None if self.paused is None else self.paused.to_json(),
        }

    def place_of(self, message_id: str) -> int | None:
        """The place of a message from 0; None for one that does not wait."""
        return next((place for place, item in enumerate(self.items) if item.id == message_id), None)


def _shown(message: QueuedMessage, place: int) -> dict[str, Any]:
    """A waiting message on the wire, without its actor and its thread."""
    view = {
        "id": message.id,
        "content": message.content,
        "attachments": message.attachments,
        "agent": message.agent_name,
        "persona": message.persona,
        "model": message.model,
        "interrupt": message.interrupt or None,
        "position": place,
        "createdAt": wire_time(message.created_at),
        "updatedAt": wire_time(message.updated_at),
    }
    return {name: value for name, value in view.items() if value is not None}
