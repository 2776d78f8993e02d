"""A turn up to its first model call: the thread, the prompt, what decides the run's shape, what the agent asks first.

Steps 0 to 9 of spec 03 §3. Where nothing has to be called or waited for, they are one unit, that of the claim.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from agent.domain.clock import wire_time
from agent.domain.runs import Run
from agent.flows import contexts, events, processors, prompt
from agent.flows.driver import Driver
from agent.flows.intake import Intake
from agent.flows.journal import Attempt, Journal, Unit
from agent.flows.recall import Recall
from agent.flows.starts import PERSIST_USER, REGENERATE
from agent.registry import AgentDefinition
from agent.sinks.writer import Done
from agent.store import in_store
from agent.store.base import AgentStore

T = TypeVar("T")


class Turn(Protocol):
    """What a turn lends to its opening."""

    def border(self) -> None: ...
    async def unit(self, work: Callable[[], Done[T]]) -> T: ...
    async def wait_for(self, call_id: str) -> None: ...


class Opening:
    """Begun in the unit of the claim, played until the first model call can be made."""

    def __init__(
        self,
        store: AgentStore,
        run: Run,
        journal: Journal,
        *,
        definition: AgentDefinition,
        recall: Recall,
        driver: Driver,
    ) -> None:
        self._store, self._run, self._journal = store, run, journal
        self._definition, self._recall, self._driver = definition, recall, driver
        self._stages: dict[str, Any] | None = None
        self._first: Attempt | None = None
        self.persona: prompt.Persona | None = None
        self.taken_ids: set[str] = set()  # provider call ids of the run so far

    @property
    def stages(self) -> dict[str, Any]:
        """What decides the shape of the run; nothing before it is known."""
        return self._stages or {}

    def begin(self) -> None:
        """Load the thread and resolve the prompt; one that has to be called waits for `play`."""
        with self._journal.unit(joined=True) as unit:
            unit.write(REGENERATE if self._run.input.get("regenerate") else PERSIST_USER, _never)
            if self._run.persona is not None:
                self.persona = unit.write("persona:resolve", prompt.resolved_persona, self._run.persona)
            self._recall.load(unit, before=prompt.STAGES)
            if self._recall.is_complete:
                self._start_known(unit)

    async def play(self, turn: Turn) -> Attempt:
        """Do what is left of it; the first model call."""
        if not self._recall.is_complete:
            turn.border()
            await self._recall.fold()
            await in_store(self._start_recalled)
        if self._stages is None:
            asked = prompt.resolve_parts(self._definition, self.persona, contexts.for_prompt(self._run))
            parts = await self._driver.abortable(asked)
            await in_store(self._start_late, parts)
        return await self._ask_first(turn) if self._first is None else self._first

    def _start_known(self, unit: Unit) -> None:
        """Start the run if its prompt has not to be called, or was."""
        if prompt.is_static(self._definition, self.persona) or unit.holds(prompt.STAGES):
            self._start(unit, prompt.static_parts(self._definition, self.persona))

    def _start_recalled(self) -> None:
        with self._journal.unit() as unit:
            self._recall.record(unit)
            self._start_known(unit)
        self._recall.settled()

    def _start_late(self, parts: list[str]) -> None:
        with self._journal.unit() as unit:
            self._start(unit, parts)

    def _start(self, unit: Unit, parts: list[str]) -> None:
        decide = partial(prompt.stages, self._definition, self._run, parts, answered=self._recall.answered)
        self._stages = unit.write(prompt.STAGES, decide)
        digest = prompt.prompt_hash(self.stages["prompt"])
        unit.start = prompt.start_of(self._run, digest)
        unit.write("persist:run:start", self._started, digest)
        if "intake" not in self.stages:
            self._first = processors.mark(unit, 0, self.stages)

    def _started(self, digest: str) -> dict[str, Any]:
        events.run_started(self._store, self._run, attempt=self._journal.lease.attempt)
        return {"promptHash": digest, "startedAt": wire_time(self._store.clock())}

    async def _ask_first(self, turn: Turn) -> Attempt:
        """Put the agent's own questions, and wait for the answers."""
        intake = Intake(self._store, self._run, self.stages["intake"])
        while (attempt := await turn.unit(partial(self._go_on_asking, intake))) is None:
            await turn.wait_for(intake.waits_for)
        self.taken_ids.update(call["providerCallId"] for call in intake.told["toolCalls"])
        self._recall.add(intake.told, intake.results, "")
        return attempt

    def _go_on_asking(self, intake: Intake) -> Done[Attempt | None]:
        with self._journal.unit() as unit:
            asked = intake.go_on(unit)
            return Done(processors.mark(unit, 0, self.stages) if intake.is_over else None, asked)


def _never() -> None:
    raise AssertionError("position 0 is recorded by the admission")
