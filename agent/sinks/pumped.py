"""What our three sinks share: one writer a run and attempt, one pump a process, purging after a run's end."""

from __future__ import annotations

import logging
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agent.domain.snapshots import NumberedFrame
from agent.sink_options import SinkOptions
from agent.sinks.followers import Positions
from agent.sinks.pump import Ear, Pump
from agent.sinks.writer import Aside, FrameWriter, Run
from agent.store.base import AgentStore

PURGE_SECONDS: Final = 60  # between two purges after a run's end

logger = logging.getLogger("agent.sinks")


class Speaker(NamedTuple):
    """Who writes in a stream: its own run, or a delegate, in one attempt."""

    run_id: str
    attempt: int


class PumpedSink(ABC):
    """A sink says how rows are appended, read, dropped and found to have lapsed; the rest is here."""

    def __init__(
        self,
        store: AgentStore | None,
        options: SinkOptions,
        *,
        run: Run,
        later: Run | None = None,
        ear: Ear | None = None,
    ) -> None:
        self._options = options
        self._run, self._later = run, later
        self._pump = Pump(self._read, store, self._options, ear=ear)
        self._writers: dict[tuple[str, str, int], FrameWriter] = {}
        self._after_end = Sometimes(self.purge_expired, PURGE_SECONDS)

    def open(self, run_id: str, attempt: int, aside: Aside | None = None) -> FrameWriter:
        """The writer of a run and attempt in this process; that of a delegate goes by the delegate's attempt."""
        speaker = Speaker(run_id if aside is None else aside.run_id, attempt)
        key = (run_id, *speaker)
        if key not in self._writers:

            def append(frames: Sequence[str | None], error: dict[str, Any] | None) -> None:
                self._appended(run_id, self._append(run_id, speaker, frames, error), frames, error)

            self._begin(run_id, speaker)
            self._writers[key] = FrameWriter(
                append,
                run=self._run,
                later=self._later,
                flush_ms=self._options.flush_ms,
                closed=lambda: self._closed(key),
                aside=aside,
            )
        return self._writers[key]

    async def subscribe(self, run_id: str, after: int = 0) -> AsyncIterator[NumberedFrame]:
        with self._pump.following(run_id, after) as frames:
            async for frame in frames:
                yield frame

    def stop(self) -> None:
        """Let the followers of this process go, and end its thread."""
        self._pump.stop()

    def _appended(
        self, run_id: str, last: int | None, frames: Sequence[str | None], error: dict[str, Any] | None
    ) -> None:
        """Rows are stored, unless they wait (None): tell the followers here, and purge now and then behind an end."""
        if last is None:
            return
        self._pump.publish(run_id, numbered(last, frames, error))
        if frames and frames[-1] is None and self._options.auto_purge:
            self._after_end()

    def _closed(self, key: tuple[str, str, int]) -> None:
        self._writers.pop(key, None)

    def _begin(self, run_id: str, speaker: Speaker) -> None:
        """A writer is made; what an older attempt writes is refused from here on."""
        return

    @abstractmethod
    def _append(
        self, run_id: str, speaker: Speaker, frames: Sequence[str | None], error: dict[str, Any] | None
    ) -> int | None:
        """Store rows, the last one maybe terminal, and answer its number; `LeaseLost` for an older attempt.

        None = they wait, and `_appended` is called once they are stored.
        """

    @abstractmethod
    async def _read(self, positions: Positions, limit: int) -> Mapping[str, Sequence[NumberedFrame]]: ...

    @abstractmethod
    def finish(self, run_id: str, frames: Sequence[str], error: dict[str, Any] | None = None) -> None: ...

    @abstractmethod
    def close(self, run_id: str) -> None: ...

    @abstractmethod
    def has(self, run_id: str) -> bool: ...

    @abstractmethod
    def purge_expired(self) -> int: ...


class Sometimes:
    """A call that is made at most once in so many seconds; its failure is logged and ends there."""

    def __init__(self, call: Callable[[], object], seconds: float) -> None:
        self._call, self._seconds = call, seconds
        self._last, self._lock = -math.inf, threading.Lock()

    def __call__(self) -> None:
        now = time.monotonic()
        with self._lock:
            if now - self._last < self._seconds:
                return
            self._last = now
        try:
            self._call()
        except Exception:
            logger.exception("%s failed; it is tried again later", self._call)


def numbered(last: int, frames: Sequence[str | None], error: dict[str, Any] | None) -> list[NumberedFrame]:
    """Rows as they were stored, the last of them under this number."""
    return [
        NumberedFrame(seq=seq, frame=frame, error=error if frame is None else None)
        for seq, frame in enumerate(frames, start=last - len(frames) + 1)
    ]
