"""Frames in the memory of one process: for tests, and for sites that need no replay after a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, ParamSpec, TypeVar

from agent.domain.snapshots import NumberedFrame
from agent.errors import LeaseLost
from agent.sink_options import SinkOptions
from agent.sinks.followers import Positions
from agent.sinks.pumped import PumpedSink, Speaker, numbered
from agent.store.base import AgentStore

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class _Stream:
    """Numbers go on above `base` when earlier frames were purged."""

    rows: list[NumberedFrame] = field(default_factory=list)
    base: int = 0
    attempts: dict[str, int] = field(default_factory=dict)  # the newest of each run that speaks here
    written: datetime | None = None

    @property
    def last(self) -> int:
        return self.base + len(self.rows)

    @property
    def ended(self) -> bool:
        return bool(self.rows) and self.rows[-1].terminal


async def here(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call without a hop: memory does not keep anybody waiting."""
    return call(*args, **kwargs)


class MemorySink(PumpedSink):
    """Lists of frames, by run; options: `SinkOptions`."""

    def __init__(self, store: AgentStore | None = None, **options: Any) -> None:  # noqa: ANN401 - checked by SinkOptions
        super().__init__(store, SinkOptions(**options), run=here)
        self._clock = store.clock if store is not None else lambda: datetime.now(UTC)
        self._streams: dict[str, _Stream] = {}
        self._lock = threading.Lock()

    def _begin(self, run_id: str, speaker: Speaker) -> None:
        with self._lock:
            attempts = self._streams.setdefault(run_id, _Stream()).attempts
            attempts[speaker.run_id] = max(attempts.get(speaker.run_id, 0), speaker.attempt)

    def _append(self, run_id: str, speaker: Speaker, frames: Sequence[str | None], error: dict[str, Any] | None) -> int:
        with self._lock:
            stream = self._streams.setdefault(run_id, _Stream())
            if speaker.attempt < stream.attempts.get(speaker.run_id, 0):
                raise LeaseLost
            return self._added(stream, frames, error)

    def _added(self, stream: _Stream, frames: Sequence[str | None], error: dict[str, Any] | None) -> int:
        stream.rows += numbered(stream.last + len(frames), frames, error)
        stream.written = self._clock()
        return stream.last

    async def _read(self, positions: Positions, limit: int) -> Mapping[str, Sequence[NumberedFrame]]:
        with self._lock:
            rows = ((run_id, row) for run_id, after in positions.items() for row in self._above(run_id, after))
            found: dict[str, list[NumberedFrame]] = {}
            for run_id, row in islice(rows, limit):
                found.setdefault(run_id, []).append(row)
            return found

    def _above(self, run_id: str, after: int) -> Sequence[NumberedFrame]:
        stream = self._streams.get(run_id)
        return () if stream is None else stream.rows[max(after - stream.base, 0) :]

    def finish(self, run_id: str, frames: Sequence[str], error: dict[str, Any] | None = None) -> None:
        rows = [*frames, None]
        with self._lock:
            stream = self._streams.setdefault(run_id, _Stream())
            if stream.ended:
                return
            last = self._added(stream, rows, error)
        self._appended(run_id, last, rows, error)

    def stored(self, run_id: str) -> list[NumberedFrame]:
        """Every row that is there, oldest first."""
        with self._lock:
            return list(self._above(run_id, 0))

    def close(self, run_id: str) -> None:
        with self._lock:
            self._streams.pop(run_id, None)

    def has(self, run_id: str) -> bool:
        with self._lock:
            return bool(self._above(run_id, 0))

    def purge_expired(self) -> int:
        if not self._options.ttl_seconds:
            return 0
        cutoff = self._clock() - timedelta(seconds=self._options.ttl_seconds)
        with self._lock:
            stale = [run_id for run_id, each in self._streams.items() if each.rows and _before(each, cutoff)]
            for run_id in stale:
                stream = self._streams.pop(run_id)
                if not stream.ended:  # its run may go on, with higher numbers
                    self._streams[run_id] = _Stream(base=stream.last, attempts=stream.attempts)
        return len(stale)


def _before(stream: _Stream, cutoff: datetime) -> bool:
    return stream.written is not None and stream.written < cutoff
