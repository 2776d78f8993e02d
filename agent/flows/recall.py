"""What a turn knows of its thread: the messages that its history policy keeps, and what stands for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.conf import agent_settings
from agent.domain import transcript
from agent.domain.history import HistoryPolicyContext
from agent.domain.model_calls import ShownMessage
from agent.domain.runs import Run, RunLease
from agent.domain.shortening import shortened
from agent.domain.summaries import leading_summary
from agent.domain.text import is_blank
from agent.flows import history, summary
from agent.flows.answers import Told, shown_answer
from agent.flows.driver import Driver
from agent.flows.journal import Attempt, Unit
from agent.flows.settlement import Leftovers
from agent.flows.summary import Folding
from agent.registry import AgentDefinition, resolve_history
from agent.spi import ModelProvider
from agent.store.base import AgentStore


class Recall:
    """The steps `load:thread` and `history:summarize` of one run, and what it adds to them."""

    def __init__(
        self, store: AgentStore, run: Run, lease: RunLease, *, definition: AgentDefinition, driver: Driver
    ) -> None:
        self._store, self._run, self._lease = store, run, lease
        self._definition, self._driver = definition, driver
        self._attempt: Attempt | None = None
        self._folding: Folding | None = None
        self._summary: str | None = None
        self.title = ""
        self.answered = False
        self.approval_mode = "blocking"
        self.asked = ""
        self.is_shortened = False
        self._messages: list[ShownMessage] = []

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to fold."""
        return self._folding is None

    def shown_to(self, provider: ModelProvider, system: str) -> tuple[str, tuple[ShownMessage, ...]]:
        """What a model is shown of the thread and of this run so far, with the system text that it begins with."""
        leading = [] if self._summary is None or is_blank(self._summary) else [leading_summary(self._summary)]
        shown = [*leading, *self._messages]
        system, messages = transcript.lawful(system, shown, transcript.manners_of(provider))
        return system, (shortened(messages) or messages) if self.is_shortened else messages

    def add(self, told: Told, results: Sequence[Mapping[str, Any]], provider_name: str) -> None:
        """An answer of this run with the results of its calls; one to a shortened request shortens those to come."""
        self._messages.append(shown_answer(told, results, provider_name))
        self.is_shortened = self.is_shortened or bool(told.get("shortened"))

    def load(self, unit: Unit, *, before: str) -> None:
        """Load the thread. What is new to fold is marked, for `fold`; `before` is the step after that."""
        run, policy = self._run, resolve_history(self._definition)
        context = HistoryPolicyContext(thread_id=run.thread_id, actor=run.actor, agent_name=run.agent_name)
        mode = self._definition.approval_mode or agent_settings().action_approval_mode
        carried = history.load_step(unit, self._store, policy, context, approval_mode=mode)
        self.title, self._summary = carried.title, carried.summary
        self.answered = carried.answered
        self.approval_mode = carried.approval_mode
        self.asked = next((one.content for one in reversed(carried.messages) if one.role == "user"), "")
        self._messages = transcript.show(carried.messages)
        # A run keeps the steps that it has recorded, whatever its policy has become since.
        if not (unit.holds(summary.STEP) or (carried.dropped and not unit.holds(before))):
            return
        self._attempt = unit.mark(summary.STEP)
        if self._attempt.done:
            self._summary = self._attempt.payload()["text"]
        else:
            self._folding = Folding(self._store, run, self._lease, policy=policy, carried=carried, driver=self._driver)

    async def fold(self) -> None:
        """Ask the summarizer for what stands for the dropped messages; a cancel breaks it off."""
        if self._folding is not None and self._attempt is not None:
            await self._driver.abortable(self._folding.run(self._attempt))

    def record(self, unit: Unit) -> None:
        """Record the new summary with its rows; once the unit is committed, `settled` says so."""
        if self._folding is not None and self._attempt is not None:
            self._summary = unit.settle(self._attempt, self._folding.record, self._attempt)["text"]

    def settled(self) -> None:
        """What was spent on the summary is recorded."""
        self._folding = None

    def leftovers(self) -> Leftovers:
        """What was spent on a summary that is not recorded."""
        return Leftovers() if self._folding is None else self._folding.leftovers()
