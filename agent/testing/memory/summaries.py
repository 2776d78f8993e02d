"""Summaries in memory: capability `summaries`."""

from __future__ import annotations

from dataclasses import replace

from agent.domain.commands import SaveSummary
from agent.domain.snapshots import StoredSummary
from agent.domain.text import clean_cut, clean_text
from agent.testing.memory.state import State
from agent.testing.memory.unit import unit
from agent.testing.memory.values import HASH, ID, NAME, exact


class Summaries(State):
    @unit
    def thread_summary(self, thread_id: str, policy_fingerprint: str) -> StoredSummary | None:
        return self.summaries.get((thread_id, policy_fingerprint)) if self.live_thread(thread_id) else None

    @unit
    def save_thread_summary(self, summary: SaveSummary) -> bool:
        now, key = self.clock(), (summary.thread_id, summary.policy_fingerprint)
        row = StoredSummary(
            id=self.new_id(),
            thread_id=exact("thread_id", summary.thread_id, ID),
            up_to_seq=summary.up_to_seq,
            text=clean_text(summary.text),
            policy_fingerprint=exact("policy_fingerprint", summary.policy_fingerprint, HASH),
            model_id=clean_cut(summary.model_id, NAME),
            created_at=now,
            updated_at=now,
        )
        known = self.summaries.get(key)
        if self.live_thread(summary.thread_id) is None or (known and known.up_to_seq >= row.up_to_seq):
            return False
        self.summaries.put(key, row if known is None else replace(row, id=known.id, created_at=known.created_at))
        return True
