"""What follows a model's answer in a step: the processors' verdict, structured output, follow-ups (spec 03 §4 d-f)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from agent.domain.model_calls import Frame
from agent.domain.processing import Subject, Verdict, passed
from agent.domain.runs import Run, RunLease
from agent.errors import OutputRejected, RunFailed, StructuredOutputInvalid
from agent.flows import contexts, takeover
from agent.flows.answers import Told
from agent.flows.driver import Driver
from agent.flows.followups import Suggesting
from agent.flows.journal import Attempt
from agent.flows.judging import Judging
from agent.flows.processors import Gate, judge
from agent.flows.recall import Recall
from agent.flows.settlement import Leftovers
from agent.flows.side_call import SideCall
from agent.flows.structured import Structuring
from agent.registry import AgentDefinition
from agent.sinks.writer import FrameWriter
from agent.store import in_store
from agent.store.base import AgentStore

Found = Mapping[str, Any]  # what an effect came to, before its rows are there


class Effect(Protocol):
    """An effect between an answer and what comes after it."""

    found: Found

    @property
    def name(self) -> str: ...
    @property
    def counted(self) -> bool: ...
    async def run(self, attempt: Attempt, told: Told) -> None: ...
    def record(self, told: Told) -> Found: ...
    def told(self, told: Told, payload: Found) -> Told: ...
    def frames(self, payload: Found) -> list[Frame]: ...
    def leftovers(self) -> Leftovers: ...


class Output:
    """The effects of one run's answers, as it recorded which it has; `pending` is one that is begun, not recorded."""

    def __init__(
        self,
        store: AgentStore,
        run: Run,
        lease: RunLease,
        *,
        definition: AgentDefinition,
        stages: Callable[[], Mapping[str, Any]],
        recall: Recall,
        driver: Driver,
    ) -> None:
        self._store, self._run, self._lease, self._driver = store, run, lease, driver
        self._definition, self._stages, self._recall = definition, stages, recall
        self._gate: Gate | None = None
        self.pending: Effect | None = None

    @property
    def is_gated(self) -> bool:
        """Whether what the model says is judged before it is kept."""
        return bool(self._stages().get("outputProcessors"))

    def writer(self, writer: FrameWriter) -> FrameWriter | Gate:
        """Where the frames of a model call go."""
        self._gate = self._gated(writer) if self.is_gated else None
        return self._gate or writer

    def leftovers(self) -> Leftovers | None:
        """What an effect leaves that was begun and is not recorded."""
        return None if self.pending is None else self.pending.leftovers()

    def first(self, step: int, writer: FrameWriter, *, over: bool) -> Effect | None:
        """What follows `llm:<step>`; `over`: there is something to show, and no calls."""
        if self.is_gated:
            return Judging(
                self._store,
                self._run,
                step,
                gate=self._gate,
                take_up=partial(self._taken_up, writer),
                judge=partial(self._judge, "answer"),
            )
        return self._closing(step) if over else None

    def after(self, effect: Effect, found: Found, *, step: int, over: bool) -> Effect | None:
        """What follows an effect that came to this."""
        if isinstance(effect, Structuring) and "value" not in found:
            return self._structuring(step, effect.number + 1, found) if effect.repairs else None
        if isinstance(effect, Suggesting) or not over:
            return None
        return self._suggesting(step) if isinstance(effect, Structuring) else self._closing(step)

    def failure(self, effect: Effect, found: Found) -> RunFailed | None:
        """How the run ends because of what was found."""
        if "reason" in found:
            return OutputRejected()
        if isinstance(effect, Structuring) and "error" in found and not effect.repairs:
            return StructuredOutputInvalid()
        return None

    def _closing(self, step: int) -> Effect | None:
        wanted = self._stages().get("structured")
        return self._suggesting(step) if wanted is None else self._structuring(step, 0, None)

    def _structuring(self, step: int, number: int, wrong: Found | None) -> Structuring:
        wanted = self._stages()["structured"]
        return Structuring(
            self._store,
            self._run,
            self._side_call(f"structured:{step}:{number}", "structured_output"),
            number=number,
            repairs=wanted["repairs"] - number,
            schema=wanted["schema"],
            kind=self._definition.output_type,
            question=self._recall.asked,
            wrong=wrong,
            judge=partial(self._judge, "structured_output"),
        )

    def _suggesting(self, step: int) -> Effect | None:
        count = self._stages().get("followUps")
        if count is None:
            return None
        call = self._side_call(f"followups:{step}", "follow_ups")
        judge = partial(self._judge, "follow_up")
        question = self._recall.asked
        return Suggesting(self._store, self._run, call, count=count, question=question, judge=judge)

    def _side_call(self, key: str, purpose: str) -> SideCall:
        return SideCall(self._run, self._lease, self._driver, key=key, purpose=purpose)

    def _gated(self, writer: FrameWriter, *, shown: str = "") -> Gate:
        context = contexts.for_processor(self._run, "answer")
        return Gate(writer, self._definition.output_processors, context, shown=shown)

    async def _taken_up(self, writer: FrameWriter) -> Gate:
        """The gate of an answer that a worker before recorded: its stream says what was let pass."""
        seen = await in_store(takeover.shown_of, self._run)
        return self._gated(writer, shown="" if seen is None else seen.text)

    async def _judge(self, subject: Subject, text: str) -> Verdict:
        if not self.is_gated:
            return passed()
        return await judge(self._definition.output_processors, text, contexts.for_processor(self._run, subject))
