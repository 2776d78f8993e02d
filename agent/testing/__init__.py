"""What a host's tests import: the store in memory, the published contracts, turns without infrastructure.

Loaded at first use, so that a vendor's tests of a contract need neither Django's settings nor its models.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.testing.memory import InMemoryStore
    from agent.testing.turns import HeldRunner, MemoryTurn, drive_run, held_runner, run_turn_in_memory

__all__ = ["HeldRunner", "InMemoryStore", "MemoryTurn", "drive_run", "held_runner", "run_turn_in_memory"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("agent.testing.memory" if name == "InMemoryStore" else "agent.testing.turns"), name)
