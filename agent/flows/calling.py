"""The model calls `llm:<step>` of a run, and what of the last one is not recorded yet (spec 03 §4 c)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.conf import agent_settings
from agent.domain.model_calls import Json, ModelRequest
from agent.domain.processing import InputPrompt, with_changes
from agent.domain.runs import Run, RunLease
from agent.flows import ledger, prompt, spans
from agent.flows.answers import Told, record_answer
from agent.flows.driver import Driver
from agent.flows.files import with_files
from agent.flows.journal import Attempt
from agent.flows.model_call import Answer, ModelCall
from agent.flows.opening import Opening
from agent.flows.processors import Gate
from agent.flows.recall import Recall
from agent.flows.settlement import Leftovers
from agent.flows.tools import Offered
from agent.registry import provider_for
from agent.sinks.writer import FrameWriter
from agent.store.base import AgentStore


class Calling:
    """Asks the run's model; `answer` is what it said until `forget`."""

    def __init__(
        self, store: AgentStore, run: Run, lease: RunLease, *, opening: Opening, recall: Recall, driver: Driver
    ) -> None:
        self._store, self._run, self._lease = store, run, lease
        self._opening, self._recall, self._driver = opening, recall, driver
        self.provider_name, self._provider, self._model = provider_for(run.model_id)
        self._call: ModelCall | None = None
        self.answer: Answer | None = None

    def prompt(self) -> InputPrompt:
        """What the model would be shown now."""
        system = prompt.JOINT.join(self._opening.stages["prompt"])
        system, messages = self._recall.shown_to(self._provider, system)
        return InputPrompt(system=system, messages=messages)

    async def ask(
        self,
        step: int,
        attempt: Attempt,
        offered: Sequence[Offered],
        *,
        writer: FrameWriter | Gate,
        changes: Mapping[str, Json],
    ) -> Answer:
        """Call the model with the prompt as it was changed; its frames go to `writer` as they come."""
        shown = with_changes(self.prompt(), changes)
        self._call = ModelCall(
            provider=self._provider,
            request=ModelRequest(
                system=shown.system,
                messages=await with_files(self._run.actor, self._provider, shown.messages),
                tools=tuple(one.spec for one in offered),
                model=self._model,
                cancelled=self._driver.cancelled,
                idempotency_key=f"{self._run.id}:llm:{step}",
            ),
            writer=writer,
            step=step,
            key=f"llm:{step}",
            kinds={one.spec.name: one.kind for one in offered},
            repeats=self._lease.attempt - 1 if attempt.repeated else 0,
            retries=agent_settings().model_retries,
            model_id=self._run.model_id or self._model or self.provider_name,
            taken_ids=self._opening.taken_ids,
            is_shortened=self._recall.is_shortened,
        )
        self.answer = await spans.answered(self._run, self._call, provider=self.provider_name)
        return self.answer

    def record(self, step: int, *, gated: bool) -> Told:
        """The rows of the answer, and its payload; the message of a `gated` one is kept later."""
        assert self.answer is not None
        return record_answer(
            self._store,
            self._run,
            self.answer,
            step=step,
            run_attempt=self._lease.attempt,
            provider=self.provider_name,
            gated=gated,
        )

    def forget(self) -> None:
        """What was asked is recorded."""
        self._call = self.answer = None

    def leftovers(self) -> Leftovers | None:
        """What a call that was not recorded leaves behind for the settlement; None when there is none."""
        if self._call is None:
            return None
        rows = [ledger.broken_row(self._run, one, run_attempt=self._lease.attempt) for one in self._call.broken]
        if (done := self.answer) is not None:
            rows.append(ledger.row(self._run, done.counted, model_id=done.model_id, step_key=self._call.key))
        retries = max(0, len(self._call.broken) - 1)
        return Leftovers(usage=rows, retries=retries, text=self._call.shown)
