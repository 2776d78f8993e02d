"""A run's row in memory: how it begins, whose it is, and what its holder adds to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from agent.domain.commands import NewRun, RunStart
from agent.domain.runs import Run, RunLease
from agent.domain.states import RunStatus
from agent.testing.memory.values import HASH, ID, NAME, WORD, copied, exact, ms_between


def new_run(run: NewRun, now: datetime) -> Run:
    """The row of a run that was just admitted."""
    return Run(
        id=exact("id", run.id, ID),
        thread_id=exact("thread_id", run.thread_id, ID),
        actor=run.actor,
        agent_name=exact("agent_name", run.agent_name, NAME),
        model_id=exact("model_id", run.model_id, NAME),
        persona=exact("persona", run.persona, NAME),
        status=RunStatus.QUEUED.value,
        trigger=exact("trigger", str(run.trigger), WORD),
        input=copied(run.input),
        parent_run_id=exact("parent_run_id", run.parent_run_id, ID),
        parent_call_id=exact("parent_call_id", run.parent_call_id, ID),
        stream_run_id=exact("stream_run_id", run.stream_run_id or run.id, ID),
        frame_base=0,
        depth=run.depth,
        lease_owner=None,
        lease_expires_at=None,
        attempt=0,
        recoveries=0,
        dispatched_at=now if run.dispatched else None,
        effect_position=None,
        effect_name=None,
        cancel_requested_at=None,
        prompt_hash=None,
        retries=0,
        created_at=now,
        started_at=None,
        settled_at=None,
        duration_ms=None,
        active_ms=0,
        error_code=None,
        error_message=None,
    )


def shown_run(run: Run) -> Run:
    """The row with JSON of its own."""
    return replace(run, input=copied(run.input))


def fenced(run: Run, lease: RunLease) -> bool:
    """Whether the lease is still the run's."""
    held = run.status == RunStatus.RUNNING and run.lease_owner == lease.owner
    return held and run.attempt == lease.attempt


def started(start: RunStart) -> dict[str, Any]:
    """The columns that a resolved prompt fills."""
    columns = {
        "prompt_hash": exact("prompt_hash", start.prompt_hash, HASH),
        "agent_name": exact("agent_name", start.agent_name, NAME),
        "model_id": exact("model_id", start.model_id, NAME),
        "persona": exact("persona", start.persona, NAME),
    }
    if start.parent_run_id is not None:
        columns["parent_run_id"] = exact("parent_run_id", start.parent_run_id, ID)
    return columns


def no_lease() -> dict[str, Any]:
    return {"lease_owner": None, "lease_expires_at": None}


def worked_ms(run: Run, lease: RunLease, now: datetime) -> int:
    """The time under leases, this one included."""
    if lease.claimed_at is not None and lease.active_ms is not None:
        return lease.active_ms + ms_between(lease.claimed_at, now)
    if run.lease_expires_at is None:
        return run.active_ms
    return run.active_ms + ms_between(run.lease_expires_at - timedelta(seconds=lease.seconds), now)
