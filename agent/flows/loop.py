"""The turn: numbered steps, each recorded once (spec 03 §3-4). Between them only pure code runs.

Read it as the table of commits in DESIGN.md: `begin` is the second; each pass of `_step` makes one for the model's
answer and one a batch of tools; the last answer commits together with the title and the end of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar, cast

from agent.domain.model_calls import Frame, Json
from agent.domain.runs import RunLease
from agent.errors import Cancelled, ModelNoOutput, NotFound
from agent.flows import contexts, events, quota
from agent.flows.answers import Told, blank, finish_frame, is_empty
from agent.flows.call_rows import CallRows
from agent.flows.calling import Calling
from agent.flows.driver import Driver
from agent.flows.ending import Ending
from agent.flows.journal import Attempt, Journal, Unit
from agent.flows.opening import Opening
from agent.flows.output import Effect, Output
from agent.flows.parking import park
from agent.flows.processors import derive, is_input
from agent.flows.recall import Recall
from agent.flows.retelling import untold_by
from agent.flows.settlement import Leftovers
from agent.flows.tool_step import Outcome, ToolStep
from agent.flows.tools import Offered, offer, still_open
from agent.registry import registry
from agent.sinks.writer import Done, FrameWriter
from agent.store import in_store
from agent.store.base import AgentStore

T = TypeVar("T")


class Said(NamedTuple):
    """An answer as far as it is recorded, with what comes next: an effect, its calls, or the end."""

    told: Told
    effect: Effect | None = None
    attempt: Attempt | None = None
    tools: ToolStep | None = None


class Turn:
    """One run in the hands of the worker that holds its lease; `writer` is opened by the runner."""

    writer: FrameWriter

    def __init__(self, store: AgentStore, lease: RunLease, driver: Driver) -> None:
        opened = store.open_run(lease.run_id)
        if opened is None:
            raise NotFound
        self.store, self.lease, self.run, self.opened = store, lease, opened.run, opened
        self.broken: Exception | None = None
        self.untold: list[Frame] = []  # of the worker before
        self._driver = driver
        self._journal = Journal(store, lease, opened)
        self._definition = registry.definition(self.run.agent_name)
        self._recall = Recall(store, self.run, lease, definition=self._definition, driver=driver)
        self._opening = Opening(
            store, self.run, self._journal, definition=self._definition, recall=self._recall, driver=driver
        )
        self._calling = Calling(store, self.run, lease, opening=self._opening, recall=self._recall, driver=driver)
        self._output = Output(
            store,
            self.run,
            lease,
            definition=self._definition,
            stages=lambda: self._opening.stages,
            recall=self._recall,
            driver=driver,
        )
        self._work, self._limits = events.Work(), quota.Limits(self.run)
        self._ending = Ending(store, self.run, lease, self._journal, recall=self._recall, work=lambda: self._work)

    def begin(self) -> None:
        """Load the thread and resolve the prompt, in the unit of the claim; a prompt to be called waits for `play`."""
        self._opening.begin()

    async def play(self) -> None:
        """Model calls and tools until the answer; returns when the run is settled as completed."""
        if self.broken is not None:
            raise self.broken
        attempt: Attempt | None = await self._opening.play(self)
        steps: int = self._opening.stages["maxSteps"]
        for step in range(steps):
            assert attempt is not None
            attempt = await self._step(step, attempt, last=step + 1 == steps)
            if attempt is None:
                return

    def leftovers(self) -> Leftovers:
        """What a model call that was not recorded leaves behind for the settlement."""
        left = self._calling.leftovers() or self._output.leftovers() or self._recall.leftovers()
        return replace(left, work=self._work)

    def border(self) -> None:
        """Where a run looks whether it was asked to stop; no position is spent on it."""
        if self._journal.cancel_requested:
            raise Cancelled
        self._limits.hold()
        self._driver.border()

    async def unit(self, work: Callable[[], Done[T]]) -> T:
        """A unit of work in one hop, with the frames behind its commit."""
        return await self.writer.behind(in_store, work)

    async def wait_for(self, call_id: str) -> None:
        """Park until somebody has decided about the call; return when that is done already."""
        self.border()
        await self.writer.flush()  # whoever goes on writes in this stream too
        await in_store(park, self.store, self.lease, call_id)

    async def _step(self, step: int, attempt: Attempt, *, last: bool) -> Attempt | None:
        """One model call and the tools it asks for; the next step's attempt, None when the run is settled."""
        self.border()
        ctx = contexts.for_offer(self.run, self._opening.persona)
        offered: Sequence[Offered] = await offer(self._definition, ctx=ctx)
        attempt, changes = await self._derived(step, attempt)
        if not attempt.done:
            writer = self._output.writer(self.writer)
            asked = self._calling.ask(step, attempt, offered, writer=writer, changes=changes)
            answer = await self._driver.abortable(asked)
            called = frozenset(call.name for call in answer.calls)
            offered = await still_open(self._definition, offered, called, ctx=ctx)
        said = await self.unit(partial(self._record_answer, step, attempt, offered))
        while said.effect is not None and said.attempt is not None:
            self._output.pending = said.effect
            self.border()
            if not said.attempt.done:
                await self._driver.abortable(said.effect.run(said.attempt, said.told))
            said = await self.unit(partial(self._record_effect, step, said, offered))
        self._output.pending = None
        return None if said.tools is None else await self._run_tools(step, said.told, said.tools, last=last)

    async def _derived(self, step: int, attempt: Attempt) -> tuple[Attempt, Mapping[str, Json]]:
        """What the host's processors change in the prompt of the call, and the attempt of the call itself."""
        if not is_input(attempt):
            return attempt, {}
        changes: Mapping[str, Json] = {}
        if not attempt.done:
            context = contexts.for_processor(self.run, "prompt")
            asked = derive(self._definition.input_processors, self._calling.prompt(), context)
            changes = await self._driver.abortable(asked)
        call, changes = await in_store(self._record_changes, step, attempt, changes)
        self.border()
        return call, changes

    def _record_changes(
        self, step: int, attempt: Attempt, changes: Mapping[str, Json]
    ) -> tuple[Attempt, Mapping[str, Json]]:
        with self._journal.unit() as unit:
            recorded = unit.settle(attempt, dict, changes)
            return unit.mark(f"llm:{step}"), recorded

    def _record_answer(self, step: int, attempt: Attempt, offered: Sequence[Offered]) -> Done[Said]:
        """Record the answer, with what comes after it; nothing at all in the first step fails the run."""
        answer, before = self._calling.answer, self._work
        empty = blank(answer) if answer is not None else is_empty(attempt.payload())
        calls = bool(answer.calls if answer is not None else attempt.payload()["toolCalls"])

        def record(unit: Unit) -> Told:
            told = cast(Told, unit.settle(attempt, partial(self._calling.record, gated=self._output.is_gated), step))
            self._work = before.and_answer(told["usage"])
            return told

        if empty and step == 0:
            with self._journal.unit() as unit:
                record(unit)
            self._calling.forget()
            raise ModelNoOutput
        effect = self._output.first(step, self.writer, over=not (empty or calls))
        appends = answer is not None and not empty and not self._output.is_gated
        done = self._recorded(record, effect, offered if calls else None, appends=appends)
        self._calling.forget()
        self._opening.taken_ids.update(call["providerCallId"] for call in done.result.told["toolCalls"])
        return done

    def _record_effect(self, step: int, said: Said, offered: Sequence[Offered]) -> Done[Said]:
        """Record what followed the answer, with what comes after that; a refusal fails the run."""
        effect, attempt = said.effect, said.attempt
        assert effect is not None
        assert attempt is not None
        found = attempt.payload() if attempt.done else effect.found
        told, shown = effect.told(said.told, found), list[Frame]()

        def record(unit: Unit) -> Told:
            payload = unit.settle(attempt, effect.record, said.told)
            shown.extend(untold_by(unit, effect.frames(payload)))
            return effect.told(said.told, payload)

        if (failure := self._output.failure(effect, found)) is not None:
            with self._journal.unit() as unit:
                record(unit)
            self._output.pending = None
            raise failure
        calls = bool(told["toolCalls"])
        after = self._output.after(effect, found, step=step, over=not (calls or is_empty(told)))
        return self._recorded(record, after, offered if calls else None, shown=shown)

    def _recorded(
        self,
        record: Callable[[Unit], Told],
        effect: Effect | None,
        offered: Sequence[Offered] | None,
        *,
        appends: bool = False,
        shown: Sequence[Frame] = (),
    ) -> Done[Said]:
        """Record with what comes after it: an effect, the first batch of calls (`offered`), or the end of the run."""
        if effect is None and offered is None:
            told = self._closing(record, appends=appends)
            return Done(Said(told), [*shown, finish_frame(told), *self._ending.frames], ended=True)
        with self._journal.unit() as unit:
            told = record(unit)
            if effect is not None:
                return Done(Said(told, effect, unit.mark(effect.name, counted=effect.counted)), shown)
            assert offered is not None
            tools = self._tool_step(told, offered)
            return Done(Said(told, tools=tools), [*shown, *untold_by(unit, tools.go_on(unit))])

    async def _run_tools(self, step: int, told: Told, tools: ToolStep, *, last: bool) -> Attempt | None:
        next_attempt, over = None, False
        while next_attempt is None and not over:
            self.border()
            if tools.waits_for is not None:
                await self.wait_for(tools.waits_for)
            outcomes = await self._driver.abortable(tools.run(), finishes=True)
            next_attempt, over = await self.unit(partial(self._record_tools, step, told, tools, outcomes, last=last))
        self._recall.add(told, tools.results, self._calling.provider_name)
        return next_attempt

    def _record_tools(
        self, step: int, told: Told, tools: ToolStep, outcomes: Sequence[Outcome], *, last: bool
    ) -> Done[tuple[Attempt | None, bool]]:
        """Record what was done; then go on with the step, or close it and begin a model call, or end the run."""
        goes_on = tools.more
        if not goes_on and (last or tools.ends_turn(outcomes)):

            def record(unit: Unit) -> list[Frame]:
                return [*tools.settle(unit, outcomes), *tools.close(unit, step)]

            settled = self._closing(record)
            return Done((None, True), [*settled, finish_frame(told), *self._ending.frames], ended=True)
        with self._journal.unit() as unit:
            settled = tools.settle(unit, outcomes)
            if goes_on:
                return Done((None, False), untold_by(unit, settled + tools.go_on(unit)))
            settled += tools.close(unit, step)
            attempt = self._limits.next_call(unit, step + 1, self._opening.stages)
            return Done((attempt, False), untold_by(unit, [*settled, finish_frame(told)]))

    def _closing(self, record: Callable[[Unit], T], *, appends: bool = False) -> T:
        """A unit that settles the run too; a run that was asked to stop meanwhile has recorded it all the same."""
        try:
            return self._ending.close(record, appends=appends)
        except Cancelled:
            self._calling.forget()
            self._output.pending = None
            raise

    def _tool_step(self, told: Told, offered: Sequence[Offered]) -> ToolStep:
        terminal, mode = self._opening.stages.get("terminalTools"), self._recall.approval_mode
        rows = CallRows(self.store, self.run, told, terminal=terminal, mode=mode)
        emit, cancelled = self.writer.write_soon, self._driver.cancelled
        context = partial(contexts.for_tool, self.run, store=self.store, cancelled=cancelled, emit=emit)
        return ToolStep(rows, offered, context, attempt=self.lease.attempt)
