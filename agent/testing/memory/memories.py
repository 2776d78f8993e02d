"""Facts in memory: capability `memory`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.domain.memories import Memory, SaveMemory
from agent.domain.text import clean_text
from agent.testing.memory.state import State
from agent.testing.memory.unit import unit
from agent.testing.memory.values import ID, NAME, REF, WORD, exact

SCOPE = 300


class Memories(State):
    @unit
    def upsert_memory(self, fact: SaveMemory) -> Memory:
        now = self.clock()
        row = Memory(
            id=self.new_id(),
            scope=exact("scope", fact.scope, SCOPE),
            key=exact("key", fact.key, NAME),
            text=clean_text(fact.text),
            origin_author=exact("origin_author", fact.origin_author, WORD),
            origin_thread_id=exact("origin_thread_id", fact.origin_thread_id, ID),
            origin_run_id=exact("origin_run_id", fact.origin_run_id, ID),
            origin_actor_ref=exact("origin_actor_ref", fact.origin_actor_ref, REF),
            pinned=fact.pinned,
            created_at=now,
            updated_at=now,
        )
        known = self.memory_at.first((row.scope, row.key))
        if known is not None:
            old = self.memories[known]
            row = replace(row, id=old.id, pinned=old.pinned, created_at=old.created_at)
        self.memories.put(row.id, row)
        return row

    @unit
    def list_memories(self, scopes: Sequence[str]) -> list[Memory]:
        found = sorted((row for row in self.memories if row.scope in set(scopes)), key=lambda row: row.id)
        found.sort(key=lambda row: (row.pinned, row.updated_at), reverse=True)
        return found

    @unit
    def get_memory(self, memory_id: str) -> Memory | None:
        return self.memories.get(memory_id)

    @unit
    def delete_memory(self, memory_id: str) -> bool:
        if memory_id not in self.memories:
            return False
        self.memories.drop(memory_id)
        return True
