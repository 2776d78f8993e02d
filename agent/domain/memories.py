"""Facts that outlive a thread, by scope and key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Author = Literal["agent", "human"]


def own_scope(actor_ref: str) -> str:
    """The scope of one person's facts."""
    return f"actor:{actor_ref}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveMemory:
    """A fact to keep under its key; `pinned` counts for one that is new."""

    scope: str
    key: str
    text: str
    origin_author: Author
    origin_thread_id: str | None = None
    origin_run_id: str | None = None
    origin_actor_ref: str | None = None
    pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A fact as it is kept."""

    id: str
    scope: str
    key: str
    text: str
    origin_author: str
    origin_thread_id: str | None
    origin_run_id: str | None
    origin_actor_ref: str | None
    pinned: bool
    created_at: datetime
    updated_at: datetime
