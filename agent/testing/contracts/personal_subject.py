"""What the contracts of a store's companions for personal agents are run against.

subject = CompanionSubject(InMemoryPersonalAgent())

@pytest.mark.parametrize("case", PERSONAL_AGENT_STORE_CONTRACT, ids=lambda case: case.name)
def test_contract(case): case.run(subject)      # a fresh subject for each case
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from agent.store.personal import PersonalAgentConnectionStore, PersonalAgentStore
from agent.testing.contracts.base import Case
from agent.testing.contracts.store import SettableClock, race


class Clocked(Protocol):
    clock: Callable[[], datetime]


T = TypeVar("T")
S = TypeVar("S", bound=Clocked)


@dataclass(slots=True)
class CompanionSubject(Generic[S]):
    """A fresh companion under test. `thread_ends` is called on each thread that a case started, before it ends."""

    store: S
    clock: SettableClock = field(default_factory=SettableClock)
    thread_ends: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.store.clock = self.clock

    def parallel(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Run the calls at once, each on a thread of its own, and answer in their order; an error is raised here."""
        return race(calls, self.thread_ends)


Personal = CompanionSubject[PersonalAgentStore]
Connections = CompanionSubject[PersonalAgentConnectionStore]


@dataclass(frozen=True, slots=True)
class PersonalAgentCase(Case[Personal]):
    """A promise about conversations of personal agents; with `commits` it needs real transactions."""

    commits: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionCase(Case[Connections]):
    """A promise about their connections; with `commits` it needs real transactions."""

    commits: bool = False
