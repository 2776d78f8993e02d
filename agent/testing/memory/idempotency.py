"""Idempotency keys in memory: capability `idempotency`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from agent.domain.snapshots import IdempotencyOutcome
from agent.testing.memory.state import KeyRow, State
from agent.testing.memory.unit import unit
from agent.testing.memory.values import HASH, ID, REF, copied, exact


class Idempotency(State):
    @unit
    def claim_idempotency_key(self, actor_ref: str, key: str, fingerprint: str) -> IdempotencyOutcome | None:
        known = self.find_idempotency_key(actor_ref, key)
        if known is not None:
            return known
        outcome = IdempotencyOutcome(
            fingerprint=exact("fingerprint", fingerprint, HASH),
            thread_id=None,
            run_id=None,
            message_id=None,
            outcome=None,
        )
        place = (exact("actor_ref", actor_ref, REF), exact("key", key, REF))
        self.keys.put(place, KeyRow(outcome=outcome, created_at=self.clock()))
        return None

    @unit
    def save_idempotency_outcome(
        self,
        actor_ref: str,
        key: str,
        *,
        thread_id: str | None,
        run_id: str | None,
        message_id: str | None,
        outcome: dict[str, Any],
    ) -> None:
        row = self.keys.get((actor_ref, key))
        if row is None:
            return
        saved = replace(
            row.outcome,
            thread_id=exact("thread_id", thread_id, ID),
            run_id=exact("run_id", run_id, ID),
            message_id=exact("message_id", message_id, ID),
            outcome=copied(outcome),
        )
        self.keys.put((actor_ref, key), replace(row, outcome=saved))

    @unit
    def find_idempotency_key(self, actor_ref: str, key: str) -> IdempotencyOutcome | None:
        row = self.keys.get((actor_ref, key))
        return None if row is None else replace(row.outcome, outcome=copied(row.outcome.outcome))

    @unit
    def purge_idempotency_keys(self, before: datetime) -> int:
        old = [place for place, row in self.keys.items() if row.created_at < before]
        for place in old:
            self.keys.drop(place)
        return len(old)
