"""The promise of the store about facts that outlive a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agent.domain.memories import Memory, SaveMemory


class MemoryStore(Protocol):
    """Capability `memory`."""

    def upsert_memory(self, fact: SaveMemory) -> Memory:
        """Keep the fact under its scope and key; one that was there keeps its id, pin and creation time."""

    def list_memories(self, scopes: Sequence[str]) -> list[Memory]:
        """The facts of these scopes: pinned ones first, then those changed last, then by id."""

    def get_memory(self, memory_id: str) -> Memory | None: ...
    def delete_memory(self, memory_id: str) -> bool: ...
