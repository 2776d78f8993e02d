"""Capability `memory`: facts that outlive a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.domain.memories import Memory, SaveMemory
from agent.models import MemoryFact
from agent.models.inserts import Insert
from agent.models.memory import MemoryFactQuerySet
from agent.store.orm import rows
from agent.store.orm.unit import OrmUnit

_REWRITTEN = ("text", "origin_author", "origin_thread_id", "origin_run_id", "origin_actor_ref", "updated_at")

_insert = Insert(MemoryFact)


class OrmMemories(OrmUnit):
    def upsert_memory(self, fact: SaveMemory) -> Memory:
        now = self.clock()
        values: dict[str, Any] = {name: getattr(fact, name, None) for name in rows.MEMORY}
        draft = _insert.draft(self.db, values | {"id": self.new_id(), "created_at": now, "updated_at": now})
        while (row := _insert.new(self.db, draft) or self._rewritten(draft.stored)) is None:
            continue  # the fact that was in the way is deleted
        return Memory(**{name: row[name] for name in rows.MEMORY})

    def _rewritten(self, fact: rows.Values) -> rows.Values | None:
        """The fact that has this key already, with what is said of it now; None where it is gone."""
        known = self._memories().filter(scope=fact["scope"], key=fact["key"])
        with self.joined():
            if not known.update(**{name: fact[name] for name in _REWRITTEN}):
                return None
            row: rows.Values = known.select_for_update().values(*rows.MEMORY).get()
            return row

    def list_memories(self, scopes: Sequence[str]) -> list[Memory]:
        found = self._memories().filter(scope__in=list(scopes)).told_first()
        return [Memory(**row) for row in found.values(*rows.MEMORY)]

    def get_memory(self, memory_id: str) -> Memory | None:
        row = self._memories().filter(pk=memory_id).values(*rows.MEMORY).first()
        return None if row is None else Memory(**row)

    def delete_memory(self, memory_id: str) -> bool:
        deleted, _ = self._memories().filter(pk=memory_id).delete()
        return deleted == 1

    def _memories(self) -> MemoryFactQuerySet:
        return MemoryFact.objects.using(self.db)
