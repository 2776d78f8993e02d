"""Capability `journal`: what a run has done, each step once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any

from django.db import IntegrityError, connections
from django.db.models import Exists

from agent.domain.canonical import canonical_json
from agent.domain.commands import Effect, RunStart
from agent.domain.runs import OpenRun, RunLease, Step
from agent.errors import LeaseLost
from agent.models import Run, RunStep
from agent.models.erasure import erase
from agent.models.inserts import Draft, Insert
from agent.models.prepared import Row, Select, Slot, Update, returns_from_update
from agent.models.run import RunQuerySet
from agent.store.orm import rows
from agent.store.orm.leases import held
from agent.store.orm.unit import OrmUnit

_insert = Insert(RunStep)
_CANCEL = ("cancel_requested_at",)
_AGE = ("pk", "run_id", "run__settled_at", "created_at")
_STEPS_AT_ONCE = 500
_STEP = ("position", "name", "payload")
_steps = Select(lambda: RunStep.objects.filter(run_id=Slot("run")).in_order().values_list(*_STEP))
_open = Select(
    lambda: (
        Run.objects.filter(pk=Slot("run"))
        .order_by("steps__position")
        .values_list(*rows.RUN, *(f"steps__{name}" for name in _STEP))
    )
)


def with_free_positions(runs: RunQuerySet) -> RunQuerySet:
    """Only if no position from `first` to `last` is recorded yet."""
    taken = RunStep.objects.filter(run_id=Slot("run"), position__gte=Slot("first"), position__lte=Slot("last"))
    return runs.filter(~Exists(taken))


def span(steps: Sequence[Step]) -> dict[str, int]:
    """The positions of neighbouring steps, for `with_free_positions`."""
    positions = [step.position for step in steps] or [0]
    return {"first": min(positions), "last": max(positions)}


def drafts(using: str, run_id: str, steps: Sequence[Step], now: datetime) -> list[Draft]:
    """The rows of steps, checked before anything is written."""
    return [
        _insert.draft(
            using,
            {
                "run_id": run_id,
                "position": step.position,
                "name": step.name,
                "payload": canonical_json(step.payload),
                "created_at": now,
            },
        )
        for step in steps
    ]


def insert(using: str, steps: Sequence[Draft]) -> None:
    """Record steps in one insert; the run's row is locked. A position that is taken means that the run is lost."""
    try:
        _insert.many(using, steps)
    except IntegrityError:
        raise LeaseLost from None


def started(start: RunStart) -> dict[str, str | None]:
    """The columns that a resolved prompt fills."""
    columns = {
        "prompt_hash": start.prompt_hash,
        "agent_name": start.agent_name,
        "model_id": start.model_id,
        "persona": start.persona,
    }
    return columns if start.parent_run_id is None else {**columns, "parent_run_id": start.parent_run_id}


@lru_cache
def _record(names: tuple[str, ...], *, with_steps: bool, returning: tuple[str, ...]) -> Update:
    """The holder's move beside new steps: it sets or clears the attempt marker, and what else is named."""

    def mine() -> RunQuerySet:
        runs = held(Run.objects.filter(pk=Slot("run")))
        return with_free_positions(runs) if with_steps else runs

    changes: dict[str, object] = {name: Slot(name) for name in ("effect_position", "effect_name", *names)}
    if with_steps:  # a marker alone is no progress: a run that dies in the same effect each time is given up
        changes["recoveries"] = 0
    return Update(mine, changes, returning=returning)


@dataclass(frozen=True, slots=True)
class _Moved:
    """A move was won, and what was seen with it."""

    cancel_requested: bool


class OrmJournal(OrmUnit):
    def open_run(self, run_id: str) -> OpenRun | None:
        found = _open(self.db, run=run_id)
        if not found:
            return None
        width = len(rows.RUN)
        run = rows.run(dict(zip(rows.RUN, found[0][:width], strict=True)))
        steps = [_step(row[width:]) for row in found if row[width] is not None]
        return OpenRun(run=run, steps=tuple(steps))

    def steps(self, run_id: str) -> list[Step]:
        return [_step(row) for row in _steps(self.db, run=run_id)]

    def begin_effect(self, lease: RunLease, effect: Effect) -> bool:
        with self.joined():
            mine = Run.objects.using(self.db).leased_to(lease.owner, lease.attempt).filter(pk=lease.run_id)
            marked = mine.select_for_update().values_list("effect_position", "effect_name").first()
            if marked is not None and marked != (effect.position, effect.name):
                mine.update(effect_position=effect.position, effect_name=effect.name)
        if marked is None:
            raise LeaseLost
        return bool(marked == (effect.position, effect.name))

    def record_step(self, lease: RunLease, step: Step) -> None:
        self.record_steps(lease, [step])

    def record_steps(
        self,
        lease: RunLease,
        steps: Sequence[Step],
        *,
        effect: Effect | None = None,
        start: RunStart | None = None,
    ) -> bool:
        columns = {} if start is None else started(start)
        values = {
            "run": lease.run_id,
            "owner": lease.owner,
            "attempt": lease.attempt,
            "effect_position": None if effect is None else effect.position,
            "effect_name": None if effect is None else effect.name,
        }
        recorded = drafts(self.db, lease.run_id, steps, self.clock())
        with self.joined():
            moved = self._moved_by_holder(tuple(columns), {**values, **columns, **span(steps)}, bool(steps))
            if moved is not None:
                insert(self.db, recorded)
        if moved is None:
            raise LeaseLost
        return moved.cancel_requested

    def purge_journals(self, before: datetime, limit: int = 100) -> int:
        runs = list(islice(self._settled(before), max(limit, 0)))
        with self.joined():
            erase(RunStep.objects.using(self.db).filter(run_id__in=runs))
        return len(runs)

    def _settled(self, before: datetime) -> Iterator[str]:
        """Runs that were settled before then and have steps. Steps stand in the order of their record: the walk ends
        at the first that is younger, however long the history is."""
        seen, last = set[str](), 0
        while page := list(RunStep.objects.using(self.db).oldest_after(last).values_list(*_AGE)[:_STEPS_AT_ONCE]):
            last = page[-1][0]
            for _, run_id, settled_at, created_at in page:
                if created_at >= before:
                    return
                if run_id not in seen and settled_at is not None and settled_at < before:
                    seen.add(run_id)
                    yield run_id

    def _moved_by_holder(self, names: tuple[str, ...], values: dict[str, Any], with_steps: bool) -> _Moved | None:
        """Move the run if it is still its holder's and the positions are free."""
        if returns_from_update(connections[self.db]):
            row = _record(names, with_steps=with_steps, returning=_CANCEL).returned(self.db, **values)
            return None if row is None else _Moved(row[0] is not None)
        if _record(names, with_steps=with_steps, returning=())(self.db, **values) == 0:
            return None
        run = Run.objects.using(self.db).filter(pk=values["run"])
        return _Moved(run.exclude(cancel_requested_at=None).exists())


def _step(row: Row) -> Step:
    position, name, payload = row
    return Step(position=position, name=name, payload=json.loads(payload))
