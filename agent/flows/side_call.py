"""A model call within an effect that nobody follows: a summary, a structured answer, follow-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from agent.conf import agent_settings
from agent.domain.commands import RecordUsage
from agent.domain.model_calls import Json, ModelRequest, Reply, ShownMessage
from agent.domain.runs import Run, RunLease
from agent.flows import ledger, spans
from agent.flows.driver import Driver
from agent.flows.journal import Attempt
from agent.flows.ledger import Broken
from agent.flows.model_call import ModelCall, Unheard
from agent.flows.settlement import Leftovers
from agent.registry import provider_for
from agent.store.base import AgentStore


class SideCall:
    """The calls of one effect in the hands of one worker, with what they spent until that is recorded.

    `broken` are attempts that broke off; of `answered`, the last one is the effect's own.
    """

    def __init__(self, run: Run, lease: RunLease, driver: Driver, *, key: str, purpose: str) -> None:
        self._run, self._lease, self._driver = run, lease, driver
        self.key, self._purpose = key, purpose
        self._repeats = 0
        self.broken: list[Broken] = []
        self.answered: list[Broken] = []

    def begin(self, attempt: Attempt) -> None:
        """Take the effect up, maybe after a worker that is gone."""
        self._repeats = self._lease.attempt - 1 if attempt.repeated else 0

    async def ask(
        self, system: str, text: str, *, model: str | None = None, schema: Mapping[str, Json] | None = None
    ) -> Reply:
        """Ask the run's model, or another one, without tools."""
        name, provider, own_name = provider_for(model or self._run.model_id)
        call = ModelCall(
            provider=provider,
            request=ModelRequest(
                system=system,
                messages=(ShownMessage(role="user", content=text),),
                model=own_name,
                response_schema=schema,
                purpose=self._purpose,
                cancelled=self._driver.cancelled,
                idempotency_key=f"{self._run.id}:{self.key}",
            ),
            writer=Unheard(),
            step=0,
            key=self.key,
            kinds={},
            repeats=self._repeats,
            retries=agent_settings().model_retries,
            model_id=model or self._run.model_id or own_name or name,
            taken_ids=set(),
        )
        try:
            answer = await spans.answered(self._run, call, provider=name)
        finally:
            self.broken += call.broken
        self.answered.append(Broken(step=self.key, number=0, model_id=answer.model_id, counted=answer.counted))
        return answer.reply

    def record(self, store: AgentStore, *, message_id: str | None) -> None:
        """The ledger rows of the effect: its own, and one for every other call."""
        run, purpose = self._run, self._purpose
        for row in self.other_rows():
            store.record_usage(row)
        for one in self.answered[-1:]:
            named = partial(ledger.row, run, one.counted, model_id=one.model_id, step_key=self.key)
            store.record_usage(named(message_id=message_id, purpose=purpose))
        if self.broken:
            store.bump_run_retries(run.id, len(self.broken))

    def other_rows(self) -> list[RecordUsage]:
        """Rows of calls beside the one that the effect is known by."""
        return self._numbered(self.broken + self.answered[:-1])

    def leftovers(self) -> Leftovers:
        """What was spent and is not recorded."""
        rows = self._numbered(self.broken + self.answered)
        return Leftovers(usage=rows, retries=max(0, len(self.broken) - 1))

    def _numbered(self, spent: Sequence[Broken]) -> list[RecordUsage]:
        numbered = [replace(one, number=number) for number, one in enumerate(spent, start=1)]
        return [
            ledger.broken_row(self._run, one, run_attempt=self._lease.attempt, purpose=self._purpose)
            for one in numbered
        ]
