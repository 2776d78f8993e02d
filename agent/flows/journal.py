"""The journal of a run: numbered steps, each recorded once, together with the rows it causes (spec 03 §2).

A *unit* is sync code that runs in one transaction. Steps written in it take the next positions; a position that is
recorded already answers its payload and runs nothing. At the end of the unit the new steps go in with one insert
under one guarded update of the run, which is the fence. An *effect* touches the outside between two units: the unit
before it sets the attempt marker (`mark`), the unit after it records its result (`settle`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, ParamSpec

from agent.domain.canonical import canonical_json
from agent.domain.commands import Effect, RunEnd, RunStart
from agent.domain.model_calls import Json
from agent.domain.runs import OpenRun, RunLease, Step
from agent.errors import Conflict, ReplayDiverged
from agent.store.base import AgentStore

P = ParamSpec("P")


class _Missing:
    """No payload is recorded; None is a payload."""


MISSING: Final = _Missing()


class NotSettled(Conflict):
    """The run is over, or another worker's, or was asked to stop: nothing of this unit was written."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An effect with its position: `recorded` is its payload on a replay, `repeated` says that it was begun before."""

    position: int
    name: str
    recorded: Json | _Missing
    repeated: bool

    @property
    def done(self) -> bool:
        return self.recorded is not MISSING

    def payload(self) -> Json:
        """The recorded payload of an attempt that is `done`."""
        assert not isinstance(self.recorded, _Missing)
        return self.recorded


class Journal:
    """A run's journal in the hands of the worker that holds its lease."""

    def __init__(self, store: AgentStore, lease: RunLease, opened: OpenRun) -> None:
        self._store = store
        self._recorded = {step.position: step for step in opened.steps}
        self._next = 0
        self._begun = (opened.run.effect_position, opened.run.effect_name)
        self.lease = lease
        self.cancel_requested = opened.run.cancel_requested_at is not None

    @contextmanager
    def unit(self, *, joined: bool = False) -> Iterator[Unit]:
        """One transaction. What is written in it commits with its steps, or not at all.

        `joined`: the caller has opened it, and gives all of it up when this part fails.
        """
        unit, before = Unit(self), self._next
        try:
            with nullcontext() if joined else self._store.atomic():
                yield unit
                self._flush(unit)
        except BaseException:
            self._next = before  # nothing of it was written, so its positions are free again
            raise
        self._recorded.update((step.position, step) for step in unit.steps)

    def _flush(self, unit: Unit) -> None:
        if unit.ending is not None:
            if not self._store.record_run_end(self.lease.run_id, unit.ending, lease=self.lease, steps=unit.steps):
                raise NotSettled
        elif unit.steps or unit.effect or unit.start:
            if unit.marked and unit.effect and self.begun(unit.effect.position, unit.effect.name):
                self._store.bump_run_retries(self.lease.run_id, unit.marked)
            self.cancel_requested |= bool(
                self._store.record_steps(self.lease, unit.steps, effect=unit.effect, start=unit.start)
            )

    def position(self, name: str) -> tuple[int, Json | _Missing]:
        """Hand out the next position, with what is recorded there; another name there is a divergence."""
        position = self._next
        step = self._recorded.get(position)
        if step is not None and step.name != name:
            raise ReplayDiverged(f"position {position} holds {step.name}, not {name}")
        self._next += 1
        return position, MISSING if step is None else step.payload

    def patched(self, name: str) -> tuple[bool, int | None]:
        """Whether the run has this shape, and the position at which to record the marker if it is new."""
        step = self._recorded.get(self._next)
        if step is None:
            self._next += 1
            return True, self._next - 1
        if step.name != f"patch:{name}":
            return False, None
        self._next += 1
        return True, None

    def holds(self, name: str) -> bool:
        """Whether the next position is recorded, under this name."""
        step = self._recorded.get(self._next)
        return step is not None and step.name == name

    def begun(self, position: int, name: str) -> bool:
        return self._begun == (position, name)


class Unit:
    """The steps of one transaction; see the module."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.steps: list[Step] = []
        self.effect: Effect | None = None
        self.marked = 0  # effects that are to come; parallel ones stand under one marker
        self.start: RunStart | None = None
        self.ending: RunEnd | None = None

    def write(self, name: str, call: Callable[P, Json], *args: P.args, **kwargs: P.kwargs) -> Json:
        """A step whose rows commit with it: exactly once."""
        position, payload = self._journal.position(name)
        return self._record(position, name, call(*args, **kwargs)) if payload is MISSING else payload

    def settle(self, attempt: Attempt, call: Callable[P, Json], *args: P.args, **kwargs: P.kwargs) -> Json:
        """Record what an effect gave, with the rows that causes; on a replay its recorded payload."""
        if attempt.done:
            return attempt.recorded
        return self._record(attempt.position, attempt.name, call(*args, **kwargs))

    def mark(self, name: str, *, counted: bool = True) -> Attempt:
        """Give the next effect its position; the marker commits with this unit, before the outside is touched.

        One that is `counted` is a retry of the run when it is begun again.
        """
        position, payload = self._journal.position(name)
        self.marked += counted and payload is MISSING
        if payload is MISSING and self.effect is None:
            self.effect = Effect(position=position, name=name)
        return Attempt(position, name, payload, self._journal.begun(position, name))

    def patched(self, name: str) -> bool:
        """Whether the run has the shape introduced by `name`; a run that has not been there yet gets it."""
        known, position = self._journal.patched(name)
        if position is not None:
            self._record(position, f"patch:{name}", None)
        return known

    def holds(self, name: str) -> bool:
        """Whether the next position is recorded, under this name."""
        return self._journal.holds(name)

    def end(self, ending: RunEnd) -> None:
        """Settle the run with this unit."""
        self.ending = ending

    def _record(self, position: int, name: str, payload: Json) -> Json:
        step = Step(position=position, name=name, payload=as_recorded(payload))
        self.steps.append(step)
        return step.payload


def as_recorded(payload: Json) -> Json:
    """The payload after the round trip through its row, so that the first run and every replay see the same bytes."""
    return json.loads(canonical_json(payload))
