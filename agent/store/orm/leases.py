"""Capability `runs`: the lease, which is the right to work on a run; every move of its holder is guarded by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connections
from django.db.models import Case, F, Q, When
from django.db.models.functions import Coalesce

from agent.domain.runs import RunLease
from agent.domain.states import OPEN_TOOL_CALL, TERMINAL_RUN, RunStatus
from agent.models import Run, ToolCall
from agent.models.prepared import Slot, Update, now_slot, returns_from_update
from agent.models.run import RunQuerySet
from agent.store.orm.unit import OrmUnit, whole_ms

_FREE: dict[str, None] = {"lease_owner": None, "lease_expires_at": None}
_CLAIMED = ("attempt", "started_at", "active_ms")


def held(runs: RunQuerySet) -> RunQuerySet:
    """The fence of a prepared move: `owner` and `attempt` have to be those of the run."""
    return runs.filter(status=RunStatus.RUNNING, lease_owner=Slot("owner"), attempt=Slot("attempt"))


def _mine() -> RunQuerySet:
    return held(Run.objects.filter(pk=Slot("run")))


def _claimable() -> RunQuerySet:
    lapsed = Q(status=RunStatus.RUNNING, lease_expires_at__lte=Slot("now"))
    return Run.objects.filter(Q(status=RunStatus.QUEUED) | lapsed, pk=Slot("run"))


_claim_changes: dict[str, object] = {
    # A claim over a lapsed lease is a recovery. First of all: MySQL shows later assignments the new status.
    "recoveries": Case(When(status=RunStatus.RUNNING, then=F("recoveries") + 1), default=F("recoveries")),
    "status": RunStatus.RUNNING,
    "lease_owner": Slot("owner"),
    "lease_expires_at": Slot("expires"),
    "attempt": F("attempt") + 1,
    "started_at": Coalesce("started_at", now_slot()),
}
_claim = Update(_claimable, _claim_changes, returning=_CLAIMED)
_claim_silently = Update(_claimable, _claim_changes)
_worked = {"active_ms": Slot("active_ms")}
_renew = Update(_mine, {"lease_expires_at": Slot("expires"), **_worked})
_release = Update(_mine, {"status": RunStatus.QUEUED, "dispatched_at": None, **_worked, **_FREE})
_park = Update(_mine, {"status": RunStatus.WAITING, **_worked, **_FREE})


class OrmLeases(OrmUnit):
    def claim_run(self, run_id: str, owner: str, lease_seconds: int) -> RunLease | None:
        now = self.clock()
        claimed = self._claimed(run_id, owner, now, now + timedelta(seconds=lease_seconds))
        if claimed is None:
            return None
        lease = RunLease(run_id=run_id, owner=owner, attempt=0, seconds=lease_seconds, claimed_at=now)
        return replace(lease, **dict(zip(_CLAIMED, claimed, strict=True)))

    def _claimed(self, run_id: str, owner: str, now: datetime, expires: datetime) -> Sequence[Any] | None:
        values = {"run": run_id, "owner": owner, "now": now, "expires": expires}
        if returns_from_update(connections[self.db]):
            return _claim.returned(self.db, **values)
        with self.joined():  # the row is locked by the update, so what is read is what was written
            if _claim_silently(self.db, **values) == 0:
                return None
            return Run.objects.using(self.db).filter(pk=run_id).values_list(*_CLAIMED).first()

    def renew_run(self, lease: RunLease) -> bool:
        now = self.clock()
        return self._by_holder(_renew, lease, now, expires=now + timedelta(seconds=lease.seconds))

    def release_run(self, lease: RunLease) -> bool:
        return self._by_holder(_release, lease, self.clock())

    def park_run(self, lease: RunLease, call_ids: Sequence[str]) -> bool:
        with self.joined():
            run = Run.objects.using(self.db).leased_to(lease.owner, lease.attempt).filter(pk=lease.run_id)
            locked = run.select_for_update().values_list("cancel_requested_at").first()
            if locked is None or locked[0] is not None or not self._all_wait(call_ids):
                return False
            return self._by_holder(_park, lease, self.clock())

    def _all_wait(self, call_ids: Sequence[str]) -> bool:
        """Whether nobody has decided any of these calls, and no run that answers one of them is over."""
        calls = ToolCall.objects.using(self.db).filter(pk__in=call_ids)
        if calls.filter(~Q(decision=None) | ~Q(status__in=OPEN_TOOL_CALL)).exists():
            return False
        children = Run.objects.using(self.db).filter(parent_call_id__in=call_ids)
        return not children.filter(status__in=TERMINAL_RUN).exists()

    def lease_owners(self) -> list[str]:
        running = Run.objects.using(self.db).filter(status=RunStatus.RUNNING)
        return sorted(owner for owner in running.values_list("lease_owner", flat=True).distinct() if owner)

    def lapse_leases(self, owners: Sequence[str]) -> int:
        if not owners:
            return 0
        now = self.clock()
        held_by_them = Run.objects.using(self.db).filter(status=RunStatus.RUNNING, lease_owner__in=owners)
        return held_by_them.filter(lease_expires_at__gt=now).update(lease_expires_at=now)

    def wake_run(self, run_id: str) -> bool:
        waiting = Run.objects.using(self.db).filter(pk=run_id, status=RunStatus.WAITING)
        return waiting.update(status=RunStatus.QUEUED, dispatched_at=None) == 1

    def lock_run(self, run_id: str) -> bool:
        with self.joined():
            run = Run.objects.using(self.db).select_for_update().filter(pk=run_id)
            return run.values_list("pk").first() is not None

    def _by_holder(self, move: Update, lease: RunLease, now: datetime, **values: object) -> bool:
        fence = {"run": lease.run_id, "owner": lease.owner, "attempt": lease.attempt}
        return move(self.db, **fence, active_ms=self._active_ms(lease, now), **values) == 1

    def _active_ms(self, lease: RunLease, now: datetime) -> int:
        """The run's time under leases, this one included."""
        if lease.claimed_at is not None and lease.active_ms is not None:
            return lease.active_ms + whole_ms(lease.claimed_at, now)
        row = Run.objects.using(self.db).filter(pk=lease.run_id).values_list("active_ms", "lease_expires_at").first()
        if row is None or row[1] is None:
            return 0 if row is None else row[0]
        return row[0] + whole_ms(row[1] - timedelta(seconds=lease.seconds), now)
