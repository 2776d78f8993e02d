"""The journal in memory: capability `journal`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from agent.domain.canonical import canonical_json
from agent.domain.commands import Effect, RunStart
from agent.domain.runs import OpenRun, Run, RunLease, Step
from agent.errors import LeaseLost
from agent.testing.memory.run_rows import fenced, shown_run, started
from agent.testing.memory.state import State
from agent.testing.memory.unit import unit
from agent.testing.memory.values import NAME, copied, exact


class Journal(State):
    @unit
    def open_run(self, run_id: str) -> OpenRun | None:
        run = self.run_rows.get(run_id)
        return None if run is None else OpenRun(run=shown_run(run), steps=tuple(self.steps(run_id)))

    @unit
    def steps(self, run_id: str) -> list[Step]:
        return [_shown(step) for step in self.journals.get(run_id) or ()]

    @unit
    def begin_effect(self, lease: RunLease, effect: Effect) -> bool:
        run = self._held(lease)
        repeated = (run.effect_position, run.effect_name) == (effect.position, effect.name)
        self.run_rows.put(run.id, replace(run, **_marker(effect)))
        return repeated

    @unit
    def record_step(self, lease: RunLease, step: Step) -> None:
        self.record_steps(lease, [step])

    @unit
    def record_steps(
        self,
        lease: RunLease,
        steps: Sequence[Step],
        *,
        effect: Effect | None = None,
        start: RunStart | None = None,
    ) -> bool:
        recorded = [journaled(step) for step in steps]
        columns = _marker(effect) | ({} if start is None else started(start))
        run = self._held(lease)
        self.add_steps(run.id, recorded)
        self.run_rows.put(run.id, replace(run, recoveries=0 if recorded else run.recoveries, **columns))
        return run.cancel_requested_at is not None

    def add_steps(self, run_id: str, steps: Sequence[Step]) -> None:
        """Append to the journal; whoever finds a position taken has lost the run to somebody else."""
        recorded = self.journals.get(run_id) or ()
        taken = {step.position for step in recorded}
        for step in steps:
            if step.position in taken:
                raise LeaseLost
            taken.add(step.position)
        self.journals.put(run_id, tuple(sorted([*recorded, *steps], key=lambda step: step.position)))

    @unit
    def purge_journals(self, before: datetime, limit: int = 100) -> int:
        runs = [run_id for run_id, _ in self.journals.items() if _settled(self.run_rows.get(run_id), before)]
        gone = sorted(runs)[: max(limit, 0)]
        for run_id in gone:
            self.journals.drop(run_id)
        return len(gone)

    def _held(self, lease: RunLease) -> Run:
        run = self.run_rows.get(lease.run_id)
        if run is None or not fenced(run, lease):
            raise LeaseLost
        return run


def _marker(effect: Effect | None) -> dict[str, Any]:
    """The columns of the attempt marker, None clears it."""
    if effect is None:
        return {"effect_position": None, "effect_name": None}
    return {"effect_position": effect.position, "effect_name": exact("name", effect.name, NAME)}


def journaled(step: Step) -> Step:
    """The payload as its first execution is handed it back: after a round trip through canonical JSON."""
    payload = json.loads(canonical_json(step.payload))
    return Step(position=step.position, name=exact("name", step.name, NAME), payload=payload)


def _settled(run: Run | None, before: datetime) -> bool:
    return run is not None and run.settled_at is not None and run.settled_at < before


def _shown(step: Step) -> Step:
    return Step(position=step.position, name=step.name, payload=copied(step.payload))
