"""Where a process dies, and how: a plan for one process, and a store that dies at its commits and at its frames.

A place is a text. `commit:2:before`, `commit:2:after`: the second unit of work that writes the journal.
`rows:7:before`, `rows:7:after`: the append that holds the seventh frame. The site's model and tools name their own.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.utils import timezone

from agent.domain.commands import AppendMessage, Effect, RunEnd, RunStart
from agent.domain.proposals import Proposal, ProposalAnswer, ProposalScope, Settlement
from agent.domain.runs import RunLease, Step
from agent.flows.cancel import stop
from agent.store import OrmStore

NEVER = 1_000_000  # more frames than any turn has
STOP_AFTER = "persist:tool-outputs:0"  # a plan with `stop` asks the run to stop once this is recorded


def kill() -> None:
    """The process is gone: nobody cleans up."""
    os.kill(os.getpid(), signal.SIGKILL)


def cut() -> None:
    """The database goes away for a moment: every connection of this process is closed from the other side."""
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.vendor == "sqlite":
        plan.gone = True
        return
    mine = connection.get_connection_params()
    options = {name: mine[name] for name in ("host", "port", "user", "password", "dbname") if name in mine}
    with psycopg.connect(**options, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s",
            [mine["application_name"]],
        )


def _meet() -> None:
    """SQLite has no connection to cut: the next thing that the store does fails as it would on a broken disk."""
    if plan.gone:
        plan.gone = False
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise OperationalError(*error.args) from error


ENDS: dict[str, Callable[[], None]] = {"kill": kill, "cut": cut}


@dataclass
class Plan:
    """What this process is to meet."""

    at: str = ""  # the place; none = it lives
    end: str = "kill"
    stop: bool = False
    slow: bool = False  # the model waits until each frame is stored before it says the next
    ahead: int = 0  # seconds by which this process is later than now
    log: str = os.devnull  # what was touched outside, one line a time
    gone: bool = False  # the database is, for the store's next move
    stored: int = 0  # frames this process has stored
    commits: int = 0
    waiting: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = field(default_factory=list)


plan = Plan()
_lock = threading.Lock()


def follow(order: dict[str, Any]) -> None:
    """Take a plan for this process."""
    for name in ("at", "end", "stop", "slow", "ahead", "log"):
        if name in order:
            setattr(plan, name, order[name])


def here(place: str) -> None:
    """If this is the place, the end comes now; it comes once."""
    with _lock:
        due = place == plan.at
        if due:
            plan.at = ""
    if due:
        ENDS[plan.end]()


def touched(line: str) -> None:
    """Note what was done outside; it stays, whatever becomes of this process."""
    log = os.open(plan.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, f"{line}\n".encode())
    os.close(log)


async def shown(rows: int) -> None:
    """Return when this process has stored so many frames."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()
    with _lock:
        if plan.stored >= rows:
            return
        plan.waiting.append((rows, loop, event))
    await event.wait()


def _stored(rows: int) -> None:
    with _lock:
        plan.stored += rows
        ready = [one for one in plan.waiting if one[0] <= plan.stored]
        plan.waiting = [one for one in plan.waiting if one[0] > plan.stored]
    for _, loop, event in ready:
        loop.call_soon_threadsafe(event.set)


def now() -> datetime:
    return timezone.now() + timedelta(seconds=plan.ahead)


class _Here(threading.local):
    depth = 0
    wrote: str | None = None  # the run that the open unit writes the journal of
    stops = False


class MortalStore(OrmStore):
    """The ORM's store, which meets the plan at its commits and its appends."""

    def __init__(self) -> None:
        super().__init__(clock=now)
        self._here = _Here()

    @contextmanager
    def atomic(self) -> Iterator[None]:
        outermost, self._here.depth = self._here.depth == 0, self._here.depth + 1
        number = 0
        try:
            _meet()
            with super().atomic():
                yield
                if outermost and self._here.wrote is not None:
                    plan.commits += 1
                    number = plan.commits
                    here(f"commit:{number}:before")
                    _meet()
        except BaseException:
            if outermost:
                self._here.wrote, self._here.stops = None, False
            raise
        finally:
            self._here.depth -= 1
        if number:
            self._committed(number)

    def _committed(self, number: int) -> None:
        run_id, self._here.wrote = self._here.wrote, None
        if self._here.stops and run_id is not None:
            self._here.stops = False
            stop(run_id)
        here(f"commit:{number}:after")
        _meet()

    def record_steps(
        self,
        lease: RunLease,
        steps: Sequence[Step],
        *,
        effect: Effect | None = None,
        start: RunStart | None = None,
    ) -> bool:
        self._here.wrote = lease.run_id
        self._here.stops = plan.stop and any(step.name == STOP_AFTER for step in steps)
        return super().record_steps(lease, steps, effect=effect, start=start)

    def record_run_end(
        self, run_id: str, end: RunEnd, *, lease: RunLease | None = None, steps: Sequence[Step] = ()
    ) -> bool:
        self._here.wrote = run_id
        return super().record_run_end(run_id, end, lease=lease, steps=steps)

    def claim_proposal(
        self, scope: ProposalScope, proposal_id: str, lease_ms: int, worker_id: str, *, most: int = 6
    ) -> ProposalAnswer:
        here("proposal:claiming")
        answer = super().claim_proposal(scope, proposal_id, lease_ms, worker_id, most=most)
        here("proposal:claimed")
        return answer

    def settle_proposal(
        self, scope: ProposalScope, proposal_id: str, token: str, generation: int, result: Settlement
    ) -> ProposalAnswer:
        here("proposal:settling")
        answer = super().settle_proposal(scope, proposal_id, token, generation, result)
        here("proposal:unrecorded")
        self.on_commit(partial(here, "proposal:settled"))
        return answer

    def settle_and_tell(
        self,
        scope: ProposalScope,
        proposal_id: str,
        token: str,
        generation: int,
        result: Settlement,
        message: Callable[[Proposal], AppendMessage],
    ) -> ProposalAnswer:
        def said(settled: Proposal) -> AppendMessage:
            here("proposal:admitting")
            return message(settled)

        here("proposal:settling")
        answer = super().settle_and_tell(scope, proposal_id, token, generation, result, said)
        here("proposal:unrecorded")
        self.on_commit(partial(here, "proposal:settled"))
        self.on_commit(partial(here, "proposal:admitted"))
        return answer

    def admit_outcome(self, proposal_id: str, token: str | None, message: AppendMessage) -> ProposalAnswer:
        here("proposal:admitting")
        answer = super().admit_outcome(proposal_id, token, message)
        self.on_commit(partial(here, "proposal:admitted"))
        return answer

    def append_frame(
        self, run_id: str, frame: str | None, error: dict[str, Any] | None = None, *, attempt: int | None = None
    ) -> int:
        with self._appended(1):
            return super().append_frame(run_id, frame, error, attempt=attempt)

    def append_frames(
        self, run_id: str, frames: Sequence[str | None], *, attempt: int | None = None, by: str | None = None
    ) -> int:
        with self._appended(len(frames)):
            return super().append_frames(run_id, frames, attempt=attempt, by=by)

    @contextmanager
    def _appended(self, count: int) -> Iterator[None]:
        numbers = range(plan.stored + 1, plan.stored + count + 1)
        try:
            for number in numbers:
                here(f"rows:{number}:before")
            _meet()
            yield
            _stored(count)
            for number in numbers:
                here(f"rows:{number}:after")
            _meet()
        except OperationalError:
            plan.slow = False  # nobody waits for what is not going to be stored
            _stored(NEVER)
            raise
