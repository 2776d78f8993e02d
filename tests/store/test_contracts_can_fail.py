"""A store that breaks one promise fails the case that states it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage, RecordUsage, ToolDecision
from agent.domain.ledger import ModelPrice, UsageEntry
from agent.domain.memories import Memory, SaveMemory
from agent.domain.queue import QueuePause
from agent.domain.runs import RunLease
from agent.domain.snapshots import DecisionAnswer, JsonList, Message, ThreadSummary
from agent.testing import InMemoryStore
from agent.testing.contracts import STORE_CONTRACTS, ContractMismatch, StoreSubject

pytestmark = pytest.mark.once


class ForgetsReasoning(InMemoryStore):
    def append_message(self, message: AppendMessage) -> Message:
        return super().append_message(replace(message, reasoning_ms=None))


class KeepsWhiteSpace(InMemoryStore):
    def append_message(self, message: AppendMessage) -> Message:
        stored = super().append_message(message)
        return self.messages.put(stored.id, replace(stored, content=message.content))


class AppendsResults(InMemoryStore):
    def set_message_tool_results(self, message_id: str, results: JsonList) -> None:
        stored = self.messages.get(message_id)
        super().set_message_tool_results(message_id, [*((stored and stored.tool_results) or ()), *results])


class ListsEveryTenant(InMemoryStore):
    def list_threads(self, actor: Actor, limit: int = 50) -> list[ThreadSummary]:
        tenants = {row.tenant_ref for row in self.threads}
        lists = [super(ListsEveryTenant, self).list_threads(replace(actor, tenant_ref=one), limit) for one in tenants]
        return [thread for threads in lists for thread in threads]


class ReusesNumbers(InMemoryStore):
    def truncate_from(self, thread_id: str, message_id: str) -> int:
        removed = super().truncate_from(thread_id, message_id)
        left = self.in_seq(thread_id)
        if thread_id in self.threads:
            self.touch(thread_id, last_seq=left[-1].seq if left else 0)
        return removed


class TakesUnknownForFree(InMemoryStore):
    def record_usage(self, usage: RecordUsage) -> UsageEntry:
        entry = super().record_usage(usage)
        return entry if entry.cost_nanos is not None else replace(entry, cost_nanos=0)


class PricesByTheNewest(InMemoryStore):
    def price_in_force(self, model_id: str, at: datetime) -> ModelPrice | None:
        return super().price_in_force(model_id, datetime.max.replace(tzinfo=at.tzinfo))


class DecidesAgain(InMemoryStore):
    def decide_tool_call(self, call_id: str, decision: ToolDecision) -> DecisionAnswer:
        call = self.calls.get(call_id)
        if call is not None:
            self.calls.put(call_id, replace(call, decision=None))
        return super().decide_tool_call(call_id, decision)


class ParksAnyway(InMemoryStore):
    def park_run(self, lease: RunLease, call_ids: Sequence[str]) -> bool:
        return super().park_run(lease, [])


class LetsOldHoldersRenew(InMemoryStore):
    def renew_run(self, lease: RunLease) -> bool:
        run = self.run_rows.get(lease.run_id)
        return super().renew_run(replace(lease, attempt=run.attempt if run else 0))


class TellsTooEarly(InMemoryStore):
    def on_commit(self, call: Callable[[], object]) -> None:
        call()


class NumbersFramesAnew(InMemoryStore):
    def remove_frames(self, run_ids: Sequence[str]) -> int:
        removed = super().remove_frames(run_ids)
        for run_id in run_ids:
            run = self.run_rows.get(run_id)
            if run is not None:
                self.run_rows.put(run_id, replace(run, frame_base=0))
        return removed


class ForgetsPauses(InMemoryStore):
    def set_queue_pause(self, thread_id: str, pause: QueuePause | None) -> None:
        super().set_queue_pause(thread_id, None)


class LetsGoAnyway(InMemoryStore):
    def release_unless_waiting(self, thread_id: str, run_id: str, *, title: str | None = None) -> bool:
        return self.release_active_run(thread_id, run_id, title=title)


class ForgetsKeys(InMemoryStore):
    def claim_idempotency_key(self, actor_ref: str, key: str, fingerprint: str) -> None:
        self.keys.drop((actor_ref, key))
        super().claim_idempotency_key(actor_ref, key, fingerprint)


class PinsAnew(InMemoryStore):
    def upsert_memory(self, fact: SaveMemory) -> Memory:
        stored = super().upsert_memory(fact)
        return self.memories.put(stored.id, replace(stored, pinned=fact.pinned))


class ForgetsWhatWaits(InMemoryStore):
    def referenced_media_ids(self, actor_ref: str, ids: Sequence[str]) -> list[str]:
        waiting = {item["mediaId"] for row in self.queue for item in row.attachments or ()}
        return [one for one in super().referenced_media_ids(actor_ref, ids) if one not in waiting]


class CountsEverybodys(InMemoryStore):
    def referenced_media_ids(self, actor_ref: str, ids: Sequence[str]) -> list[str]:
        everybody = {row.actor_ref for row in self.threads}
        return [one for ref in everybody for one in super(CountsEverybodys, self).referenced_media_ids(ref, ids)]


BROKEN: list[tuple[type[InMemoryStore], str, str]] = [
    (ForgetsReasoning, "round trip", "01"),
    (KeepsWhiteSpace, "round trip", "05"),
    (AppendsResults, "tool_calls", "04"),
    (PinsAnew, "memory", "02"),
    (ListsEveryTenant, "threads", "01"),
    (ReusesNumbers, "threads", "12"),
    (TakesUnknownForFree, "ledger", "02"),
    (PricesByTheNewest, "ledger", "06"),
    (DecidesAgain, "tool_calls", "07"),
    (ParksAnyway, "runs", "05"),
    (LetsOldHoldersRenew, "runs", "02"),
    (TellsTooEarly, "unit of work", "03"),
    (NumbersFramesAnew, "frames", "05"),
    (ForgetsPauses, "queue", "07"),
    (LetsGoAnyway, "queue", "10"),
    (ForgetsKeys, "idempotency", "01"),
    (ForgetsWhatWaits, "attachment_references", "01"),
    (CountsEverybodys, "attachment_references", "02"),
]


@pytest.mark.parametrize(("store", "contract", "number"), BROKEN, ids=[row[0].__name__ for row in BROKEN])
def test_a_broken_promise_is_named(store: type[InMemoryStore], contract: str, number: str) -> None:
    [case] = [case for case in STORE_CONTRACTS[contract] if case.name.split()[0] == number]
    with pytest.raises(ContractMismatch):
        case.run(StoreSubject(store()))
