"""Runs in memory: capability `runs`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from agent.domain.actor import Actor, Owner
from agent.domain.commands import NewRun, RunEnd, RunStart
from agent.domain.runs import Run, RunLease, RunScope, RunState, Step
from agent.domain.snapshots import Json
from agent.domain.states import OPEN_TOOL_CALL, TERMINAL_RUN, RunStatus
from agent.errors import IllegalMove
from agent.testing.memory.journal import Journal, journaled
from agent.testing.memory.run_rows import fenced, new_run, no_lease, shown_run, started, worked_ms
from agent.testing.memory.unit import unit
from agent.testing.memory.values import REF, cleaned, exact, fitting, ms_between


class Runs(Journal):
    @unit
    def create_run(self, run: NewRun, first_step: tuple[str, Json] | None = None) -> Run:
        row = new_run(run, self.clock())
        first = first_step and journaled(Step(position=0, name=first_step[0], payload=first_step[1]))
        known = self.run_rows.get(run.id)
        if known is not None:
            return shown_run(known)
        self.run_rows.put(run.id, row)
        if first is not None:
            self.add_steps(run.id, [first])
        return shown_run(row)

    @unit
    def get_run(self, run_id: str) -> Run | None:
        run = self.run_rows.get(run_id)
        return shown_run(run) if run else None

    @unit
    def record_run_start(self, run_id: str, start: RunStart) -> bool:
        columns = started(start)
        run = self.run_rows.get(run_id)
        if run is None or run.status in TERMINAL_RUN:
            return False
        self._change(run, **columns)
        return True

    @unit
    def record_run_end(
        self, run_id: str, end: RunEnd, *, lease: RunLease | None = None, steps: Sequence[Step] = ()
    ) -> bool:
        if end.status not in TERMINAL_RUN:
            raise IllegalMove(f"A run does not end as {end.status}.")
        run = self.run_rows.get(run_id)
        if run is None or run.status in TERMINAL_RUN or (lease is not None and not fenced(run, lease)):
            return False
        if end.status == RunStatus.COMPLETED and run.cancel_requested_at is not None:
            return False
        if steps:
            self.add_steps(run_id, [journaled(step) for step in steps])
        self._settle(run, end, lease, moved=bool(steps))
        return True

    def _settle(self, run: Run, end: RunEnd, lease: RunLease | None, *, moved: bool) -> None:
        now = self.clock()
        begun = run.started_at or now
        failed = end.status == RunStatus.FAILED
        self._change(
            run,
            status=RunStatus(end.status).value,
            started_at=begun,
            settled_at=now,
            duration_ms=ms_between(begun, now) if end.duration_ms is None else end.duration_ms,
            active_ms=run.active_ms if lease is None else worked_ms(run, lease, now),
            recoveries=0 if moved else run.recoveries,
            error_code=cleaned(fitting("error_code", end.error_code, 64)) if failed else None,
            error_message=cleaned(end.error_message) if failed else None,
            effect_position=None,
            effect_name=None,
            **no_lease(),
        )

    @unit
    def bump_run_retries(self, run_id: str, count: int = 1) -> None:
        run = self.run_rows.get(run_id)
        if run is not None:
            self._change(run, retries=run.retries + count)

    @unit
    def claim_run(self, run_id: str, owner: str, lease_seconds: int) -> RunLease | None:
        run = self.run_rows.get(run_id)
        now = self.clock()
        if run is None or not (run.status == RunStatus.QUEUED or _lapsed(run, now)):
            return None
        claimed = self._change(
            run,
            status=RunStatus.RUNNING.value,
            lease_owner=exact("lease_owner", owner, REF),
            lease_expires_at=now + timedelta(seconds=lease_seconds),
            attempt=run.attempt + 1,
            recoveries=run.recoveries + (run.status == RunStatus.RUNNING),
            started_at=run.started_at or now,
        )
        return RunLease(
            run_id=run_id,
            owner=owner,
            attempt=claimed.attempt,
            seconds=lease_seconds,
            claimed_at=now,
            started_at=claimed.started_at,
            active_ms=run.active_ms,
        )

    @unit
    def renew_run(self, lease: RunLease) -> bool:
        now = self.clock()
        expires = now + timedelta(seconds=lease.seconds)
        return self._by_holder(lease, now, lease_expires_at=expires)

    @unit
    def release_run(self, lease: RunLease) -> bool:
        queued = RunStatus.QUEUED.value
        return self._by_holder(lease, self.clock(), status=queued, dispatched_at=None, **no_lease())

    @unit
    def park_run(self, lease: RunLease, call_ids: Sequence[str]) -> bool:
        run = self.run_rows.get(lease.run_id)
        if run is None or run.cancel_requested_at is not None or not self._all_wait(call_ids):
            return False
        return self._by_holder(lease, self.clock(), status=RunStatus.WAITING.value, **no_lease())

    def _all_wait(self, call_ids: Sequence[str]) -> bool:
        """Whether nobody has decided any of these calls yet, and no run that answers one of them is over."""
        calls = [self.calls[key] for key in call_ids if key in self.calls]
        children = [self.run_rows[key] for call_id in call_ids for key in self.runs_of_call.keys(call_id)]
        undecided = all(call.decision is None and call.status in OPEN_TOOL_CALL for call in calls)
        return undecided and not any(child.status in TERMINAL_RUN for child in children)

    def _by_holder(self, lease: RunLease, now: datetime, **changes: Any) -> bool:  # noqa: ANN401 - columns of a row
        run = self.run_rows.get(lease.run_id)
        if run is None or not fenced(run, lease):
            return False
        self._change(run, active_ms=worked_ms(run, lease, now), **changes)
        return True

    @unit
    def lease_owners(self) -> list[str]:
        running = [self.run_rows[key] for key in self.runs_by_status.keys(RunStatus.RUNNING.value)]
        return sorted({run.lease_owner for run in running if run.lease_owner is not None})

    @unit
    def lapse_leases(self, owners: Sequence[str]) -> int:
        now = self.clock()
        running = [self.run_rows[key] for key in self.runs_by_status.keys(RunStatus.RUNNING.value)]
        theirs = [run for run in running if run.lease_owner in owners and not _lapsed(run, now)]
        for run in theirs:
            self._change(run, lease_expires_at=now)
        return len(theirs)

    @unit
    def wake_run(self, run_id: str) -> bool:
        run = self.run_rows.get(run_id)
        if run is None or run.status != RunStatus.WAITING:
            return False
        self._change(run, status=RunStatus.QUEUED.value, dispatched_at=None)
        return True

    @unit
    def lock_run(self, run_id: str) -> bool:
        return self.run_rows.get(run_id) is not None

    @unit
    def open_children(self, run_id: str) -> list[Run]:
        asked = [self.run_rows[key] for key in self.runs_of_parent.keys(run_id)]
        found = [run for run in asked if run.status not in TERMINAL_RUN]
        return [shown_run(run) for run in sorted(found, key=lambda run: (run.created_at, run.id))]

    @unit
    def request_cancel(self, run_id: str) -> str:
        run = self.run_rows.get(run_id)
        if run is None:
            return "unknown"
        if run.status in TERMINAL_RUN:
            return "over"
        self._change(run, cancel_requested_at=run.cancel_requested_at or self.clock())
        return "requested" if run.status == RunStatus.RUNNING else "settle_now"

    @unit
    def lapsed_runs(self, now: datetime, limit: int, queued_for: int = 60) -> list[Run]:
        unheard = now - timedelta(seconds=queued_for)
        running = [self.run_rows[key] for key in self.runs_by_status.keys(RunStatus.RUNNING.value)]
        queued = [self.run_rows[key] for key in self.runs_by_status.keys(RunStatus.QUEUED.value)]
        lost = [run for run in running if _lapsed(run, now) and _silent(run, unheard)]
        lost += [run for run in queued if run.dispatched_at is None or run.dispatched_at <= unheard]
        lost.sort(key=lambda run: (run.created_at, run.id))
        return [shown_run(run) for run in lost[: max(limit, 0)]]

    @unit
    def mark_dispatched(self, run_ids: Sequence[str]) -> None:
        now = self.clock()
        for run_id in run_ids:
            run = self.run_rows.get(run_id)
            if run is not None:
                self._change(run, dispatched_at=now)

    @unit
    def owner_of_active_run(self, run_id: str) -> Owner | None:
        held = [self.threads[key] for key in self.threads_held.keys(run_id)]
        return next((Owner(row.actor_ref, row.tenant_ref) for row in held if row.deleted_at is None), None)

    @unit
    def run_states(self, run_ids: Sequence[str]) -> dict[str, RunState]:
        found = filter(None, map(self.run_rows.get, run_ids))
        return {
            run.id: RunState(
                status=run.status, error_code=run.error_code, settled_at=run.settled_at, frame_base=run.frame_base
            )
            for run in found
        }

    @unit
    def raise_frame_base(self, run_id: str, seq: int) -> None:
        run = self.run_rows.get(run_id)
        if run is not None and run.status not in TERMINAL_RUN and run.frame_base < seq:
            self._change(run, frame_base=seq)

    @unit
    def run_scope(self, run_id: str) -> RunScope | None:
        run = self.run_rows.get(run_id)
        if run is None:
            return None
        return RunScope(
            owner=_owner(run.actor),
            thread_id=run.thread_id,
            status=run.status,
            stream_run_id=run.stream_run_id,
            attempt=run.attempt,
            error_code=run.error_code,
        )

    def _change(self, run: Run, **changes: Any) -> Run:  # noqa: ANN401 - columns of a row
        return self.run_rows.put(run.id, replace(run, **changes))


def _lapsed(run: Run, now: datetime) -> bool:
    return run.status == RunStatus.RUNNING and run.lease_expires_at is not None and run.lease_expires_at <= now


def _silent(run: Run, unheard: datetime) -> bool:
    """Whether a lapsed run was not handed over since it lapsed, or too long ago."""
    handed_over = run.dispatched_at
    return handed_over is None or handed_over <= unheard or handed_over < (run.lease_expires_at or unheard)


def _owner(actor: Actor) -> Owner:
    return Owner(actor.ref, actor.tenant_ref)
