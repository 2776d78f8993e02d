"""Capability `idempotency`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from agent.domain.snapshots import IdempotencyOutcome
from agent.models import IdempotencyKey
from agent.models.idempotency import IdempotencyKeyQuerySet
from agent.models.inserts import Insert
from agent.store.orm.unit import OrmUnit

_insert = Insert(IdempotencyKey)
_OUTCOME = ("fingerprint", "thread_id", "run_id", "message_id", "outcome")


class OrmIdempotency(OrmUnit):
    def claim_idempotency_key(self, actor_ref: str, key: str, fingerprint: str) -> IdempotencyOutcome | None:
        values = {
            "id": self.new_id(),
            "actor_ref": actor_ref,
            "key": key,
            "fingerprint": fingerprint,
            "outcome": None,
            "created_at": self.clock(),
        }
        if _insert.new(self.db, _insert.draft(self.db, values)) is not None:
            return None
        return self.find_idempotency_key(actor_ref, key)

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
        claimed = self._key(actor_ref, key)
        claimed.update(thread_id=thread_id, run_id=run_id, message_id=message_id, outcome=outcome)

    def find_idempotency_key(self, actor_ref: str, key: str) -> IdempotencyOutcome | None:
        row = self._key(actor_ref, key).values(*_OUTCOME).first()
        return None if row is None else IdempotencyOutcome(**row)

    def purge_idempotency_keys(self, before: datetime) -> int:
        return IdempotencyKey.objects.using(self.db).made_before(before).delete()[0]

    def _key(self, actor_ref: str, key: str) -> IdempotencyKeyQuerySet:
        return IdempotencyKey.objects.using(self.db).filter(actor_ref=actor_ref, key=key)
