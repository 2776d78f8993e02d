"""What a host's tests import: the store in memory, the published contracts, turns without infrastructure.

Loaded at first use, so that a vendor's tests of a contract need neither Django's settings nor its models.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.testing.confirm_tokens import InMemoryConfirmTokens
    from agent.testing.frame_sink import InMemoryFrameSink
    from agent.testing.memory import InMemoryPersonalAgent, InMemoryPersonalConnections, InMemoryStore
    from agent.testing.policies import assert_policy_promise
    from agent.testing.quota import InMemoryQuota
    from agent.testing.staging import InMemoryStagingStore
    from agent.testing.turns import HeldRunner, MemoryTurn, drive_run, held_runner, run_turn_in_memory

_HOME = {
    "HeldRunner": "turns",
    "InMemoryConfirmTokens": "confirm_tokens",
    "InMemoryQuota": "quota",
    "InMemoryFrameSink": "frame_sink",
    "InMemoryStagingStore": "staging",
    "InMemoryPersonalAgent": "memory",
    "InMemoryPersonalConnections": "memory",
    "InMemoryStore": "memory",
    "MemoryTurn": "turns",
    "assert_policy_promise": "policies",
    "drive_run": "turns",
    "held_runner": "turns",
    "run_turn_in_memory": "turns",
}

__all__ = [
    "HeldRunner",
    "InMemoryConfirmTokens",
    "InMemoryFrameSink",
    "InMemoryPersonalAgent",
    "InMemoryPersonalConnections",
    "InMemoryQuota",
    "InMemoryStagingStore",
    "InMemoryStore",
    "MemoryTurn",
    "assert_policy_promise",
    "drive_run",
    "held_runner",
    "run_turn_in_memory",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"agent.testing.{_HOME[name]}"), name)
