"""Who follows which run in this process, and for which runs rows are to be read now."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from agent.domain.snapshots import NumberedFrame
from agent.sink_options import SinkOptions
from agent.sinks.subscription import Subscription

RUNS_AT_ONCE: Final = 100  # of one read
LOOK_SECONDS: Final = 30  # how often a silent follower looks at the run's row
FIRST_LOOK_SECONDS: Final = 0.1  # who has just caught up looks soon: the run may be over without a terminal row

Positions = Mapping[str, int]


@dataclass(slots=True)
class _Run:
    """A run and its followers; instants are those of the monotonic clock."""

    subscriptions: list[Subscription] = field(default_factory=list)
    due: bool = True  # to be read now
    poll_at: float = 0.0
    look_at: float = math.inf
    rows_at: float = -math.inf  # when rows came last

    def position(self) -> int | None:
        """From where to read for all of them; None = nobody wants rows."""
        return min((each.position for each in self.subscriptions if each.hungry), default=None)

    def waiting(self) -> list[Subscription]:
        """Who has all that was read, and waits for more."""
        return [each for each in self.subscriptions if each.caught_up and not each.over]

    def looks_at(self) -> float:
        return self.look_at if self.waiting() else math.inf

    def noted(self) -> None:
        self.rows_at = time.monotonic()
        self.look_at = self.rows_at + LOOK_SECONDS


class Followers:
    """Followers of runs, on any thread; `ring` is called when there is something to read.

    Runs are polled every `poll_ms` while rows come and no wake-ups are `pushed`, else every `idle_poll_ms`; all of
    them at the same instants, so that one read serves them.
    """

    def __init__(self, options: SinkOptions, ring: Callable[[], None]) -> None:
        self.pushed = False
        self.changed = False  # somebody has come or gone
        self._options, self._ring = options, ring
        self._runs: dict[str, _Run] = {}
        self._lock = threading.RLock()

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._runs

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(tuple(self._runs))

    def __len__(self) -> int:
        return len(self._runs)

    @contextmanager
    def following(self, run_id: str, after: int) -> Iterator[Subscription]:
        """The frames above `after`, replayed and then live, for as long as the block runs."""
        subscription = Subscription(run_id, max(after, 0), drained=self._read_more)
        with self._lock:
            self._runs.setdefault(run_id, _Run()).subscriptions.append(subscription)
            self.changed = True
            self._read_more(subscription)
        try:
            yield subscription
        finally:
            self._leave(subscription)

    def _leave(self, subscription: Subscription) -> None:
        with self._lock:
            run = self._runs[subscription.run_id]
            run.subscriptions.remove(subscription)
            if not run.subscriptions:
                del self._runs[subscription.run_id]
                self.changed = True

    def _read_more(self, subscription: Subscription) -> None:
        with self._lock:
            if (run := self._runs.get(subscription.run_id)) is not None:
                run.due = True
        self._ring()

    def publish(self, run_id: str, rows: Sequence[NumberedFrame]) -> None:
        """Push rows that this process has just stored; who does not stand right before them is read for."""
        with self._lock:
            run = self._runs.get(run_id)
            if run is None or not rows:
                return
            run.noted()
            for each in run.subscriptions:
                if each.caught_up and each.position + 1 == rows[0].seq and not each.over:
                    each.put(rows)
                else:
                    run.due |= not each.over
            if run.due:
                self._ring()

    def heard(self, run_id: str, seq: int) -> None:
        """A wake-up: the run has rows up to `seq`."""
        with self._lock:
            run = self._runs.get(run_id)
            position = None if run is None else run.position()
            if run is not None and position is not None and position < seq:
                run.due = True
                self._ring()

    def read_all(self) -> None:
        """Wake everybody once."""
        with self._lock:
            for run in self._runs.values():
                run.due = True
        self._ring()

    def let_go(self) -> None:
        """End everybody without an end of the run: their clients come back."""
        with self._lock:
            for run in self._runs.values():
                for each in run.subscriptions:
                    each.let_go()

    def due(self) -> Positions:
        """For which runs to read now, and from where; they are not due again until something happens."""
        now = time.monotonic()
        found: dict[str, int] = {}
        with self._lock:
            for run_id, run in self._runs.items():
                if not run.due and run.poll_at > now:
                    continue
                run.due, run.poll_at = False, self._next_poll(run, now)
                if (position := run.position()) is not None:
                    found[run_id] = position
                if len(found) == RUNS_AT_ONCE:
                    break
        return found

    def _next_poll(self, run: _Run, now: float) -> float:
        quick = not self.pushed and now - run.rows_at < self._options.idle_after_ms / 1000
        poll, idle = self._options.poll_ms / 1000, self._options.idle_poll_ms / 1000
        pause = poll if quick else max(idle, poll)
        return (now // pause + 1) * pause

    def hand(self, positions: Positions, rows: Mapping[str, Sequence[NumberedFrame]], *, full: bool) -> None:
        """Give what was read above the positions; a full page may have left out rows of any of these runs."""
        with self._lock:
            for run_id, start in positions.items():
                if (run := self._runs.get(run_id)) is not None:
                    self._hand(run, start, rows.get(run_id, ()), full=full)

    def _hand(self, run: _Run, start: int, rows: Sequence[NumberedFrame], *, full: bool) -> None:
        if rows:
            run.noted()
        run.due |= full
        for each in run.subscriptions:
            if not each.hungry:
                continue
            if each.position < start:  # joined while the rows were read
                run.due = True
                continue
            each.put([row for row in rows if row.seq > each.position])
            if not (full or each.caught_up):
                each.caught_up = True
                run.look_at = time.monotonic() + FIRST_LOOK_SECONDS

    def silent(self) -> Positions:
        """The runs whose followers have heard nothing for a while, and where the furthest stands; each once a while."""
        now = time.monotonic()
        with self._lock:
            found = {run_id: run for run_id, run in self._runs.items() if run.looks_at() <= now}
            for run in found.values():
                run.look_at = now + LOOK_SECONDS
            return {run_id: min(each.position for each in run.waiting()) for run_id, run in found.items()}

    def look_again(self, run_id: str, seconds: float) -> None:
        with self._lock:
            if (run := self._runs.get(run_id)) is not None:
                run.look_at = time.monotonic() + seconds

    def close(self, run_id: str, error: dict[str, str] | None) -> None:
        """End those who have caught up as if the terminal row were there."""
        with self._lock:
            run = self._runs.get(run_id)
            for each in () if run is None else run.waiting():
                each.put([NumberedFrame(seq=each.position + 1, frame=None, error=error)])

    def seconds(self) -> float:
        """Until something is due by itself; infinite without followers."""
        now = time.monotonic()
        with self._lock:
            return max(0.0, min((self._next(run) for run in self._runs.values()), default=math.inf) - now)

    @staticmethod
    def _next(run: _Run) -> float:
        if run.position() is None:
            return math.inf
        return 0.0 if run.due else min(run.poll_at, run.looks_at())
