"""The journal in memory: capability `journal`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

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
        self._mark(run, effect)
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
        columns = started(start) if start is not None else {}
        run = self._held(lease)
        self.add_steps(run.id, recorded)
        self._mark(replace(run, recoveries=0, **columns), effect)
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

    def _held(self, lease: RunLease) -> Run:
        run = self.run_rows.get(lease.run_id)
        if run is None or not fenced(run, lease):
            raise LeaseLost
        return run

    def _mark(self, run: Run, effect: Effect | None) -> None:
        position, name = (None, None) if effect is None else (effect.position, exact("name", effect.name, NAME))
        self.run_rows.put(run.id, replace(run, effect_position=position, effect_name=name))


def journaled(step: Step) -> Step:
    """The payload as its first execution is handed it back: after a round trip through canonical JSON."""
    payload = json.loads(canonical_json(step.payload))
    return replace(step, name=exact("name", step.name, NAME), payload=payload)


def _shown(step: Step) -> Step:
    return replace(step, payload=copied(step.payload))
