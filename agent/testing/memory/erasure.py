"""Capability `erasure`, in memory: what somebody said goes; rows, refs, times and figures stay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from agent.domain.memories import own_scope
from agent.domain.proposal_erasure import without_texts
from agent.domain.proposal_json import from_snapshot, snapshot
from agent.domain.proposals import Proposal
from agent.domain.states import TERMINAL_RUN, Decision, DeliveryStatus, ExecutionStatus
from agent.testing.memory.frames import remove_streams
from agent.testing.memory.state import State
from agent.testing.memory.unit import unit

_WORK = {ExecutionStatus.QUEUED, ExecutionStatus.EXECUTING, ExecutionStatus.UNKNOWN}
_UNTOLD = {DeliveryStatus.PENDING, DeliveryStatus.ADMITTING}


class Erasure(State):
    @unit
    def has_open_work(self, actor_ref: str) -> bool:
        runs = (run for _, run in self.run_rows.items() if run.actor.ref == actor_ref)
        if any(run.status not in TERMINAL_RUN for run in runs):
            return True
        return any(_unfinished(from_snapshot(self.proposals[key])) for key in self._proposals_of(actor_ref))

    @unit
    def threads_of(self, actor_ref: str, after: str = "", limit: int = 100) -> list[str]:
        return _part(self.threads_of_actor.keys(actor_ref), after, limit)

    @unit
    def runs_of(self, actor_ref: str, after: str = "", limit: int = 100) -> list[str]:
        return _part((key for key, run in self.run_rows.items() if run.actor.ref == actor_ref), after, limit)

    @unit
    def proposals_of(self, actor_ref: str, after: str = "", limit: int = 100) -> list[str]:
        return _part(self._proposals_of(actor_ref), after, limit)

    @unit
    def erase_thread(self, thread_id: str) -> bool:
        row = self.threads.get(thread_id)
        if row is None or row.active_run_id is not None:
            return False
        self.threads.put(thread_id, replace(row, title="", queue_pause=None, deleted_at=row.deleted_at or self.clock()))
        for key in self.messages_of_thread.keys(thread_id):
            self.messages.put(key, replace(self.messages[key], content="", **_nothing(OF_MESSAGE)))
        for key in self.calls_of_thread.keys(thread_id):
            self.calls.put(key, replace(self.calls[key], input={}, **_nothing(OF_CALL)))
        for summary in self.summaries_of_thread.keys(thread_id):
            self.summaries.drop(summary)
        for message_id in self.queue_of_thread.keys(thread_id):
            self.queue.drop(message_id)
        return True

    @unit
    def erase_runs(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            if run_id in self.run_rows:
                self.run_rows.put(run_id, replace(self.run_rows[run_id], input={}, error_message=None))
                self.journals.drop(run_id)
        remove_streams(self, run_ids)

    @unit
    def erase_proposal(self, key: str) -> bool:
        if key not in self.proposals:
            return False
        self.proposals.put(key, snapshot(without_texts(from_snapshot(self.proposals[key]))))
        return True

    @unit
    def erase_belongings(self, actor_ref: str) -> list[str]:
        for key in [key for key, _ in self.keys.items() if key[0] == actor_ref]:
            self.keys.drop(key)
        for queued in [queued for queued, row in self.queue.items() if row.actor.ref == actor_ref]:
            self.queue.drop(queued)
        for memory in [fact.id for fact in self.memories if fact.scope == own_scope(actor_ref)]:
            self.memories.drop(memory)
        return []

    def _proposals_of(self, actor_ref: str) -> list[str]:
        return [key for key, text in self.proposals.items() if from_snapshot(text).scope.actor_ref == actor_ref]


OF_MESSAGE = (
    *("tool_calls", "tool_results", "attachments", "follow_ups"),
    *("reasoning", "ui", "provider_state", "feedback"),
)
OF_CALL = ("output", "decision_reason", "answers", "confirmation", "error")


def _nothing(names: Sequence[str]) -> dict[str, Any]:
    return dict.fromkeys(names)


def _part(ids: Iterable[str], after: str, limit: int) -> list[str]:
    return sorted(key for key in ids if key > after)[: max(limit, 0)]


def _unfinished(proposal: Proposal) -> bool:
    execution, delivery = proposal.execution, proposal.delivery
    return (
        proposal.decision is Decision.PENDING
        or (execution is not None and execution.status in _WORK)
        or (delivery is not None and delivery.status in _UNTOLD)
    )
