"""The step `history:summarize`: the policy's summarizer is asked once a run, apart from the stream (spec 04 §6)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from agent.domain.commands import RecordUsage, SaveSummary
from agent.domain.history import HistoryPolicy, fingerprint_of
from agent.domain.redaction import redact
from agent.domain.runs import Run, RunLease
from agent.domain.states import TokensSource, UsagePurpose
from agent.domain.summaries import HistorySummary, SummaryContext
from agent.domain.text import is_blank
from agent.errors import RunFailed
from agent.flows import ledger
from agent.flows.driver import Driver
from agent.flows.history import Carried
from agent.flows.journal import Attempt
from agent.flows.ledger import Counted
from agent.flows.settlement import Leftovers
from agent.flows.side_call import SideCall
from agent.store.base import AgentStore

STEP = "history:summarize"

logger = logging.getLogger("agent.history")


class Folding:
    """The effect in the hands of one worker: what the summarizer made, and what it spent until that is recorded."""

    def __init__(
        self,
        store: AgentStore,
        run: Run,
        lease: RunLease,
        *,
        policy: HistoryPolicy,
        carried: Carried,
        driver: Driver,
    ) -> None:
        self._store, self._run = store, run
        self._policy, self._carried = policy, carried
        self._calls = SideCall(run, lease, driver, key=STEP, purpose=UsagePurpose.HISTORY_SUMMARY)
        self._made: HistorySummary | None = None
        self._failed = False

    async def run(self, attempt: Attempt) -> None:
        """Ask the summarizer. Whatever it raises, the turn goes on without a new summary."""
        self._calls.begin(attempt)
        try:
            self._made = await self._summarized()
        except Exception as error:
            if getattr(error, "agent_signal", False):
                raise
            self._failed = True
            told = redact(f"{type(error).__name__}: {error}")
            logger.warning("run %s goes on without a new summary of its history: %s", self._run.id, told)

    def record(self, attempt: Attempt) -> dict[str, Any]:
        """The rows of what was made and spent, and the payload of the step."""
        for row in (*self._calls.other_rows(), *self._own_row()):
            self._store.record_usage(row)
        if broken := self._calls.broken:
            self._store.bump_run_retries(self._run.id, len(broken))
        if self._failed:
            return {"text": self._carried.summary, "failed": True}
        if self._made is None:
            return {"text": self._carried.summary, "upToSeq": self._carried.covered}
        if is_blank(self._made.text):
            return {"text": "", "upToSeq": self._carried.covered}
        self._save(self._made)
        return {"text": self._made.text, "upToSeq": max(self._carried.folds_up_to, self._carried.covered)}

    def leftovers(self) -> Leftovers:
        """What was spent on a summary that is not recorded."""
        return self._calls.leftovers()

    async def _summarized(self) -> HistorySummary | None:
        summarize = getattr(self._policy, "summarize", None)
        if summarize is None:
            raise RunFailed("The history policy does not summarize any more.")
        run, carried = self._run, self._carried
        ask = self._calls.ask
        context = SummaryContext(thread_id=run.thread_id, actor=run.actor, agent_name=run.agent_name, ask=ask)
        made = await summarize(carried.dropped, context, carried.summary)
        if made is not None and not isinstance(made, HistorySummary):
            raise TypeError(f"summarize gave {type(made).__name__}, not HistorySummary or None")
        return made

    def _own_row(self) -> list[RecordUsage]:
        """What the summarizer reported, else what the model was seen to use; nothing when it asked none of ours."""
        asked, made = self._calls.answered[-1:], self._made
        counted = asked[0].counted if asked else None
        model_id = asked[0].model_id if asked else self._run.model_id or ""
        if made is not None:
            model_id = made.model_id or model_id
            if made.usage is not None and (counted is None or counted.source == TokensSource.REPORTED):
                cost = made.usage.reported_cost_usd if made.reported_cost_usd is None else made.reported_cost_usd
                usage = replace(made.usage, reported_cost_usd=cost)
                counted = Counted(usage=usage, source=TokensSource.REPORTED)
        if counted is None:
            return []
        purpose = UsagePurpose.HISTORY_SUMMARY
        return [ledger.row(self._run, counted, model_id=model_id, step_key=STEP, purpose=purpose)]

    def _save(self, made: HistorySummary) -> None:
        if "summaries" not in self._store.capabilities or self._carried.folds_up_to <= self._carried.covered:
            return
        asked = self._calls.answered[-1].model_id if self._calls.answered else ""
        self._store.save_thread_summary(
            SaveSummary(
                thread_id=self._run.thread_id,
                policy_fingerprint=fingerprint_of(self._policy),
                up_to_seq=self._carried.folds_up_to,
                text=made.text,
                model_id=made.model_id or asked,
            )
        )
