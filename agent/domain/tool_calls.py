"""Pure rules of a tool call's row: the id it is stored under and when its times are set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agent.domain.canonical import sha256_hex
from agent.domain.states import EXECUTED_TOOL_CALL, TERMINAL_TOOL_CALL
from agent.domain.text import is_exact

_COLUMN = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The two times that a status brings; a status that does not settle brings none."""

    executed_at: datetime | None
    settled_at: datetime | None


def column_call_id(provider_call_id: str) -> str:
    """A provider's id as its column holds it; one that does not fit (too long, NUL) stands for its hash."""
    fits = len(provider_call_id) <= _COLUMN and is_exact(provider_call_id)
    return provider_call_id if fits else sha256_hex(provider_call_id)


def settlement(status: str, now: datetime) -> Settlement:
    """When a call that takes this status now was executed and settled."""
    return Settlement(
        executed_at=now if status in EXECUTED_TOOL_CALL else None,
        settled_at=now if status in TERMINAL_TOOL_CALL else None,
    )
