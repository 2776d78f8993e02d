"""The turn: numbered steps, each recorded once (spec 03 §3-4). Between them only pure code runs.

Read it as the table of commits in DESIGN.md: `begin` is the second; each pass of `_step` makes one for the model's
answer and one a batch of tools; the last answer commits together with the title and the end of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

from agent.domain.model_calls import Frame
from agent.domain.runs import RunLease
from agent.errors import Cancelled, ModelNoOutput, NotFound
from agent.flows import contexts, events, quota
from agent.flows.answers import Told, blank, blank_told, finish_frame
from agent.flows.call_rows import CallRows
from agent.flows.calling import Calling
from agent.flows.driver import Driver
from agent.flows.ending import Ending
from agent.flows.journal import Attempt, Journal, Unit
from agent.flows.opening import Opening
from agent.flows.parking import park
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
        return self._calling.leftovers(self._work) or replace(self._recall.leftovers(), work=self._work)

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
        if not attempt.done:
            answer = await self._driver.abortable(self._calling.ask(step, attempt, offered, self.writer))
            called = frozenset(call.name for call in answer.calls)
            offered = await still_open(self._definition, offered, called, ctx=ctx)
        told, tools = await self.unit(partial(self._record_answer, step, attempt, offered))
        return None if tools is None else await self._run_tools(step, told, tools, last=last)

    def _record_answer(
        self, step: int, attempt: Attempt, offered: Sequence[Offered]
    ) -> Done[tuple[Told, ToolStep | None]]:
        """Record the answer; without calls the run ends with it, else the first batch of calls is admitted."""
        answer, tools, refused, before = self._calling.answer, None, list[Frame](), self._work

        def record(unit: Unit) -> Told:
            told = cast(Told, unit.settle(attempt, self._calling.record, step))
            self._work = before.and_answer(told["usage"])
            return told

        calls = answer.calls if answer is not None else attempt.payload()["toolCalls"]
        if calls:
            with self._journal.unit() as unit:
                told = record(unit)
                tools = self._tool_step(told, offered)
                refused = untold_by(unit, tools.go_on(unit))
        elif step == 0 and (blank(answer) if answer is not None else blank_told(attempt.payload())):
            with self._journal.unit() as unit:
                record(unit)
            self._calling.forget()
            raise ModelNoOutput
        else:
            told = self._closing(record, appends=answer is not None and not blank(answer))
        self._calling.forget()
        self._opening.taken_ids.update(call["providerCallId"] for call in told["toolCalls"])
        if tools is None:
            return Done((told, None), [finish_frame(told), *self._ending.frames], ended=True)
        return Done((told, tools), refused)

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
                settled = tools.settle(unit, outcomes)
                tools.close(unit, step)
                return settled

            settled = self._closing(record)
            return Done((None, True), [*settled, finish_frame(told), *self._ending.frames], ended=True)
        with self._journal.unit() as unit:
            settled = tools.settle(unit, outcomes)
            if goes_on:
                return Done((None, False), untold_by(unit, settled + tools.go_on(unit)))
            tools.close(unit, step)
            attempt = self._limits.next_call(unit, step + 1, self._opening.stages)
            return Done((attempt, False), untold_by(unit, [*settled, finish_frame(told)]))

    def _closing(self, record: Callable[[Unit], T], *, appends: bool = False) -> T:
        """A unit that settles the run too; a run that was asked to stop meanwhile has recorded it all the same."""
        try:
            return self._ending.close(record, appends=appends)
        except Cancelled:
            self._calling.forget()
            raise

    def _tool_step(self, told: Told, offered: Sequence[Offered]) -> ToolStep:
        terminal, mode = self._opening.stages.get("terminalTools"), self._recall.approval_mode
        rows = CallRows(self.store, self.run, told, terminal=terminal, mode=mode)
        emit, cancelled = self.writer.write_soon, self._driver.cancelled
        context = partial(contexts.for_tool, self.run, store=self.store, cancelled=cancelled, emit=emit)
        return ToolStep(rows, offered, context, attempt=self.lease.attempt)
