"""What a host's tests import: the store in memory, the published contracts, fixtures."""

from agent.testing.memory import InMemoryStore

__all__ = ["InMemoryStore"]
