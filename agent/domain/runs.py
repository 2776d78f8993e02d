"""Values of a run as they come out of the store: its row, its lease, its journal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.domain.actor import Actor, Owner

Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run's row, every field. Times in ms are wall (`duration_ms`) and under a lease (`active_ms`)."""

    id: str
    thread_id: str
    actor: Actor
    agent_name: str | None
    model_id: str | None
    persona: str | None
    status: str
    trigger: str
    input: dict[str, Any]
    parent_run_id: str | None
    parent_call_id: str | None
    stream_run_id: str
    frame_base: int
    depth: int
    lease_owner: str | None
    lease_expires_at: datetime | None
    attempt: int
    recoveries: int
    dispatched_at: datetime | None
    effect_position: int | None
    effect_name: str | None
    cancel_requested_at: datetime | None
    prompt_hash: str | None
    retries: int
    created_at: datetime
    started_at: datetime | None
    settled_at: datetime | None
    duration_ms: int | None
    active_ms: int
    error_code: str | None
    error_message: str | None

    @property
    def is_delegate(self) -> bool:
        """Whether another run awaits this one, which speaks in its stream."""
        return self.stream_run_id != self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """Whose a run is, finished ones too."""

    owner: Owner
    thread_id: str
    status: str
    stream_run_id: str
    attempt: int
    error_code: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """How far a run is, for whoever follows it; `settled_at` None = not over."""

    status: str
    error_code: str | None
    settled_at: datetime | None
    frame_base: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLease:
    """The right to work on a run. `attempt` fences every write of its holder.

    `claimed_at`, `started_at` (the run's first claim) and `active_ms` (before this claim) save its holder a read when
    it renews, parks, releases or settles; where they are absent the store reads them.
    """

    run_id: str
    owner: str
    attempt: int
    seconds: int
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    active_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One recorded position of a run's journal; `payload` is what the first execution gave, after a JSON round trip."""

    position: int
    name: str
    payload: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run with its whole journal, read together."""

    run: Run
    steps: tuple[Step, ...]
