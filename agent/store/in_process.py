"""Runs and journals of a store that keeps none: in the memory of this process, and gone with it (spec 02 §3).

Such a site is served by one process: no other one knows its runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Final, cast

from agent.domain.actor import Owner
from agent.domain.commands import RunEnd
from agent.domain.runs import Run, RunLease
from agent.domain.states import OPEN_TOOL_CALL
from agent.store.base import AgentStore
from agent.store.work import JournalStore, RunStore
from agent.testing.memory.runs import Runs

KEPT: Final = frozenset({"runs", "journal"})
MEMBERS: Final = frozenset(name for kept in (RunStore, JournalStore) for name in vars(kept) if not name.startswith("_"))
SETTLED_RUNS: Final = 200  # how many runs that are over are still known, for whoever joins their stream late


def with_runs(store: AgentStore) -> AgentStore:
    """The store itself, or beside one that records no runs those of this process."""
    return store if store.capabilities >= KEPT else cast("AgentStore", WithProcessRuns(store))


class ProcessRuns(Runs):
    """Runs and their journals; what they ask of threads and calls, they ask the store."""

    def __init__(self, store: AgentStore) -> None:
        super().__init__(clock=self._now)
        self._store = store
        self._over: deque[str] = deque()

    def _now(self) -> datetime:
        return self._store.clock()

    def owner_of_active_run(self, run_id: str) -> Owner | None:
        run = self.run_rows.get(run_id)
        holds = run is not None and self._store.active_run_for_thread(run.thread_id) == run_id
        return self._store.owner_of_thread(run.thread_id) if run is not None and holds else None

    def _all_wait(self, call_ids: Sequence[str]) -> bool:
        calls = [call for call in map(self._store.tool_call_approval, call_ids) if call is not None]
        undecided = all(call.decision is None and call.status in OPEN_TOOL_CALL for call in calls)
        return undecided and super()._all_wait(call_ids)

    def _settle(self, run: Run, end: RunEnd, lease: RunLease | None, *, moved: bool) -> None:
        super()._settle(run, end, lease, moved=moved)
        self._over.append(run.id)
        while len(self._over) > SETTLED_RUNS:
            gone = self._over.popleft()
            self.run_rows.drop(gone)
            self.journals.drop(gone)


class WithProcessRuns:
    """A store, and beside it the runs of this process: one unit of work covers both."""

    def __init__(self, store: AgentStore) -> None:
        self._store = store
        self._runs = ProcessRuns(store)
        self.capabilities = store.capabilities - KEPT

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any member of a store
        return getattr(self._runs if name in MEMBERS else self._store, name)

    @property
    def clock(self) -> Callable[[], datetime]:
        return self._store.clock

    @clock.setter
    def clock(self, clock: Callable[[], datetime]) -> None:
        self._store.clock = clock

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """All or nothing in both; what is told after the commit is told when both have committed."""
        with self._runs.atomic(), self._store.atomic():
            yield

    def on_commit(self, call: Callable[[], object]) -> None:
        """Call after the outermost commit (at once outside of a unit), never after a rollback."""
        self._runs.on_commit(partial(self._store.on_commit, call))
