"""What a turn knows of its thread: the messages that its history policy keeps, and what stands for the others."""

from __future__ import annotations

from agent.conf import agent_settings
from agent.domain import transcript
from agent.domain.history import HistoryPolicyContext
from agent.domain.model_calls import ShownMessage
from agent.domain.runs import Run, RunLease
from agent.domain.summaries import leading_summary
from agent.domain.text import is_blank
from agent.flows import history, summary
from agent.flows.driver import Driver
from agent.flows.journal import Attempt, Unit
from agent.flows.settlement import Leftovers
from agent.flows.summary import Folding
from agent.registry import AgentDefinition, resolve_history
from agent.store.base import AgentStore


class Recall:
    """The steps `load:thread` and `history:summarize` of one run; `messages` grow with what the run adds."""

    def __init__(
        self, store: AgentStore, run: Run, lease: RunLease, *, definition: AgentDefinition, driver: Driver
    ) -> None:
        self._store, self._run, self._lease = store, run, lease
        self._definition, self._driver = definition, driver
        self._attempt: Attempt | None = None
        self._folding: Folding | None = None
        self._summary: str | None = None
        self.title = ""
        self.asked = ""
        self.messages: list[ShownMessage] = []

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to fold."""
        return self._folding is None

    @property
    def shown(self) -> list[ShownMessage]:
        """What a model is shown of the thread and of this run so far, the summary first."""
        text = self._summary
        return self.messages if text is None or is_blank(text) else [leading_summary(text), *self.messages]

    def load(self, unit: Unit, *, before: str) -> None:
        """Load the thread. What is new to fold is marked, for `fold`; `before` is the step after that."""
        run, policy = self._run, resolve_history(self._definition)
        context = HistoryPolicyContext(thread_id=run.thread_id, actor=run.actor, agent_name=run.agent_name)
        mode = self._definition.approval_mode or agent_settings().action_approval_mode
        carried = history.load_step(unit, self._store, policy, context, approval_mode=mode)
        self.title, self._summary = carried.title, carried.summary
        self.asked = next((one.content for one in reversed(carried.messages) if one.role == "user"), "")
        self.messages = transcript.show(carried.messages)
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
