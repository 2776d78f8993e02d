"""What the contracts of the store are run against: a fresh store, its clock, threads, and a counter of queries.

    subject = StoreSubject(InMemoryStore())

    @pytest.mark.parametrize("case", THREAD_CONTRACT, ids=lambda case: case.name)
    def test_contract(case): case.run(subject)      # a fresh subject for each case

A case with `commits` uses threads or looks at what happens after a commit: it needs real transactions, where the others
may run inside one that the test takes back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from agent.store.base import AgentStore
from agent.testing.contracts.base import Case

T = TypeVar("T")
START = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
PATIENCE = 60.0  # seconds before threads that hang are a broken promise

CountQueries = Callable[[], AbstractContextManager[Callable[[], int]]]


@dataclass(slots=True)
class SettableClock:
    """A clock that stands still until it is told."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


@dataclass(slots=True)
class StoreSubject:
    """A fresh store under test. `thread_ends` is called on each thread that a case started, before it ends."""

    store: AgentStore
    clock: SettableClock = field(default_factory=SettableClock)
    count_queries: CountQueries | None = None  # the number of statements inside; None where there are none
    thread_ends: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.store.clock = self.clock

    def parallel(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Run the calls at once, each on a thread of its own, and answer in their order; an error is raised here."""
        return race(calls, self.thread_ends)


def race(calls: Sequence[Callable[[], T]], thread_ends: Callable[[], object]) -> list[T]:
    """Run the calls at once, each on a thread of its own, and answer in their order; an error is raised here."""
    return _Race(calls, thread_ends).run()


class _Race:
    """All threads stand at one line before any of them starts."""

    def __init__(self, calls: Sequence[Callable[[], T]], thread_ends: Callable[[], object]) -> None:
        self._calls = calls
        self._thread_ends = thread_ends
        self._line = threading.Barrier(len(calls))
        self._answers: dict[int, object] = {}
        self._errors: list[BaseException] = []

    def run(self) -> list[T]:
        threads = [threading.Thread(target=self._start, args=(place,)) for place in range(len(self._calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        if any(thread.is_alive() for thread in threads):
            raise TimeoutError("A racing call hangs: the store waits for itself.")
        if self._errors:
            raise self._errors[0]
        return [self._answers[place] for place in range(len(self._calls))]  # type: ignore[misc]

    def _start(self, place: int) -> None:
        try:
            self._line.wait(PATIENCE)
            self._answers[place] = self._calls[place]()
        except BaseException as error:
            self._errors.append(error)
        finally:
            self._thread_ends()


@dataclass(frozen=True, slots=True)
class StoreCase(Case[StoreSubject]):
    """A promise of the store; with `commits` it needs real transactions. `needs`: the optional capabilities it uses."""

    commits: bool = False
    needs: frozenset[str] = frozenset()


Proof = Callable[[StoreSubject], None]


def case(
    contract: list[StoreCase], name: str, *, commits: bool = False, needs: Iterable[str] = ()
) -> Callable[[Proof], Proof]:
    """Add a proof to a contract; `needs`: the optional capabilities that it uses beside the contract's own."""

    def add(proof: Proof) -> Proof:
        contract.append(StoreCase(name, proof, commits, frozenset(needs)))
        return proof

    return add
