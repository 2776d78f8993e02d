"""What a host's tests import: the store in memory, the published contracts, turns without infrastructure."""

from agent.testing.memory import InMemoryStore
from agent.testing.turns import HeldRunner, MemoryTurn, drive_run, held_runner, run_turn_in_memory

__all__ = ["HeldRunner", "InMemoryStore", "MemoryTurn", "drive_run", "held_runner", "run_turn_in_memory"]
