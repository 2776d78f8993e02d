"""Capability `runs`: the rows of runs. Who may work on one is in `leases`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db.models import F, Q
from django.db.models.functions import Coalesce

from agent.domain.actor import Owner
from agent.domain.commands import NewRun, RunEnd, RunStart
from agent.domain.runs import Run as RunValue
from agent.domain.runs import RunLease, RunScope, RunState, Step
from agent.domain.snapshots import Json
from agent.domain.states import OPEN_RUN, TERMINAL_RUN, RunStatus
from agent.errors import IllegalMove, LeaseLost
from agent.models import Run, Thread
from agent.models.inserts import Insert
from agent.models.prepared import Select, Slot, Update, now_slot
from agent.store.orm import journal, rows
from agent.store.orm.leases import OrmLeases, held
from agent.store.orm.unit import whole_ms

_insert = Insert(Run)
_scope = Select(
    lambda: Run.objects.filter(pk=Slot("run")).values_list(
        "actor_ref", "tenant_ref", "thread_id", "status", "stream_run_id", "attempt", "error_code"
    )
)
_owner_of_active = Select(
    lambda: Thread.objects.alive().held_by(Slot("run")).values_list("actor_ref", "tenant_ref")  # type: ignore[arg-type]
)
_ENDED: dict[str, Any] = {
    "lease_owner": None,
    "lease_expires_at": None,
    "effect_position": None,
    "effect_name": None,
}
_END_SLOTS = ("status", "duration_ms", "error_code", "error_message")


@lru_cache
def _end(*, leased: bool, completed: bool, with_steps: bool) -> Update:
    """The settlement of a run, guarded by all that may forbid it."""
    runs = Run.objects.open().filter(pk=Slot("run"))
    if leased:
        runs = held(runs)
    if completed:
        runs = runs.filter(cancel_requested_at=None)
    if with_steps:
        runs = journal.with_free_positions(runs)
    changes: dict[str, object] = {name: Slot(name) for name in _END_SLOTS}
    changes |= {"settled_at": Slot("now"), "started_at": Coalesce("started_at", now_slot())}
    if leased:
        changes["active_ms"] = Slot("active_ms")
    if with_steps:
        changes["recoveries"] = 0
    return Update(lambda: runs, {**changes, **_ENDED})


class OrmRuns(OrmLeases):
    def create_run(self, run: NewRun, first_step: tuple[str, Json] | None = None) -> RunValue:
        now = self.clock()
        values = {name: getattr(run, name, None) for name in rows.RUN}
        values |= {
            "actor": run.actor.to_json(),
            "actor_ref": run.actor.ref,
            "tenant_ref": run.actor.tenant_ref,
            "status": RunStatus.QUEUED,
            "stream_run_id": run.stream_run_id or run.id,
            "dispatched_at": now if run.dispatched else None,
            "created_at": now,
        }
        for counted in ("frame_base", "attempt", "recoveries", "retries", "active_ms"):
            values[counted] = 0
        draft = _insert.draft(self.db, values)
        first = [] if first_step is None else [Step(position=0, name=first_step[0], payload=first_step[1])]
        steps = journal.drafts(self.db, run.id, first, now)
        with self.joined():
            stored = _insert.new(self.db, draft)
            if stored is not None:
                journal.insert(self.db, steps)
        if stored is not None:
            return rows.run(stored)
        return self.get_run(run.id) or rows.run(draft.stored)

    def get_run(self, run_id: str) -> RunValue | None:
        row = Run.objects.using(self.db).filter(pk=run_id).values(*rows.RUN).first()
        return None if row is None else rows.run(row)

    def open_children(self, run_id: str) -> list[RunValue]:
        children = Run.objects.using(self.db).open().filter(parent_run_id=run_id)
        return [rows.run(row) for row in children.order_by("created_at", "id").values(*rows.RUN)]

    def record_run_start(self, run_id: str, start: RunStart) -> bool:
        columns = journal.started(start)
        return Run.objects.using(self.db).open().filter(pk=run_id).update(**columns) == 1

    def record_run_end(
        self, run_id: str, end: RunEnd, *, lease: RunLease | None = None, steps: Sequence[Step] = ()
    ) -> bool:
        if end.status not in TERMINAL_RUN:
            raise IllegalMove(f"A run does not end as {end.status}.")
        now = self.clock()
        recorded = journal.drafts(self.db, run_id, steps, now)
        with self.joined():
            won = self._settle(run_id, end, lease, steps, now)
            if won:
                journal.insert(self.db, recorded)
        if not won and steps and self._positions_taken(run_id, end, lease, steps):
            raise LeaseLost
        return won

    def _settle(self, run_id: str, end: RunEnd, lease: RunLease | None, steps: Sequence[Step], now: datetime) -> bool:
        failed = end.status == RunStatus.FAILED
        values: dict[str, object] = {
            "run": run_id,
            "now": now,
            "status": end.status,
            "duration_ms": self._duration(run_id, end, lease, now),
            "error_code": end.error_code if failed else None,
            "error_message": end.error_message if failed else None,
        }
        if lease is not None:
            values |= {"owner": lease.owner, "attempt": lease.attempt, "active_ms": self._active_ms(lease, now)}
        move = _end(leased=lease is not None, completed=end.status == RunStatus.COMPLETED, with_steps=bool(steps))
        return move(self.db, **values, **journal.span(steps)) == 1

    def _duration(self, run_id: str, end: RunEnd, lease: RunLease | None, now: datetime) -> int:
        if end.duration_ms is not None:
            return end.duration_ms
        started_at = None if lease is None else lease.started_at
        if started_at is None:  # the first write of a settlement without a lease is the lock of its run
            run = Run.objects.using(self.db).select_for_update().filter(pk=run_id)
            started_at = run.values_list("started_at", flat=True).first()
        return 0 if started_at is None else whole_ms(started_at, now)

    def _positions_taken(self, run_id: str, end: RunEnd, lease: RunLease | None, steps: Sequence[Step]) -> bool:
        """Whether that alone is why the run was not settled."""
        runs = Run.objects.using(self.db).open().filter(pk=run_id)
        if end.status == RunStatus.COMPLETED:
            runs = runs.filter(cancel_requested_at=None)
        if lease is not None:
            runs = runs.leased_to(lease.owner, lease.attempt)
        positions = [step.position for step in steps]
        return runs.filter(steps__position__in=positions).exists()

    def bump_run_retries(self, run_id: str, count: int = 1) -> None:
        Run.objects.using(self.db).filter(pk=run_id).update(retries=F("retries") + count)

    def request_cancel(self, run_id: str) -> str:
        with self.joined():
            run = Run.objects.using(self.db).filter(pk=run_id)
            status = run.select_for_update().values_list("status", flat=True).first()
            if status is None:
                return "unknown"
            if status not in OPEN_RUN:
                return "over"
            run.filter(cancel_requested_at=None).update(cancel_requested_at=self.clock())
            return "requested" if status == RunStatus.RUNNING else "settle_now"

    def lapsed_runs(self, now: datetime, limit: int, queued_for: int = 60) -> list[RunValue]:
        if limit <= 0:
            return []
        unheard = Q(dispatched_at=None) | Q(dispatched_at__lte=now - timedelta(seconds=queued_for))
        lapsed = Q(status=RunStatus.RUNNING, lease_expires_at__lte=now)
        silent = lapsed & (unheard | Q(dispatched_at__lt=F("lease_expires_at")))  # not handed over since it lapsed
        lost = silent | Q(status=RunStatus.QUEUED) & unheard
        found = Run.objects.using(self.db).filter(lost).order_by("created_at", "id").values(*rows.RUN)
        return [rows.run(row) for row in found[:limit]]

    def mark_dispatched(self, run_ids: Sequence[str]) -> None:
        if run_ids:
            Run.objects.using(self.db).filter(pk__in=run_ids).update(dispatched_at=self.clock())

    def owner_of_active_run(self, run_id: str) -> Owner | None:
        row = _owner_of_active.first(self.db, run=run_id)
        return None if row is None else Owner(row[0], row[1])

    def run_scope(self, run_id: str) -> RunScope | None:
        row = _scope.first(self.db, run=run_id)
        if row is None:
            return None
        ref, tenant_ref, thread_id, status, stream_run_id, attempt, error_code = row
        return RunScope(
            owner=Owner(ref, tenant_ref),
            thread_id=thread_id,
            status=status,
            stream_run_id=stream_run_id,
            attempt=attempt,
            error_code=error_code,
        )

    def run_states(self, run_ids: Sequence[str]) -> dict[str, RunState]:
        found = Run.objects.using(self.db).filter(pk__in=run_ids)
        columns = ("status", "error_code", "settled_at", "frame_base")
        return {row.pop("id"): RunState(**row) for row in found.values("id", *columns)}

    def raise_frame_base(self, run_id: str, seq: int) -> None:
        Run.objects.using(self.db).open().filter(pk=run_id, frame_base__lt=seq).update(frame_base=seq)
