"""Frames in the memory of one process: for tests, and for sites that need no replay after a restart."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from agent.domain.snapshots import NumberedFrame
from agent.errors import LeaseLost
from agent.sinks.wake import Wakes
from agent.sinks.writer import FLUSH_MS, FrameWriter

WAIT_SECONDS = 30

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class _Stream:
    frames: list[NumberedFrame] = field(default_factory=list)
    attempt: int = 0
    written: float = 0.0
    ended: bool = False


async def here(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call without a hop: memory does not keep anybody waiting."""
    return call(*args, **kwargs)


class MemorySink:
    """Options: `flush_ms`, `ttl_seconds` (counted from a stream's last write; 0 = never purge)."""

    def __init__(self, store: object = None, *, flush_ms: int = FLUSH_MS, ttl_seconds: int = 3600) -> None:
        self._flush_ms = flush_ms
        self._ttl = ttl_seconds
        self._wakes = Wakes()
        self._streams: dict[str, _Stream] = {}

    def open(self, run_id: str, attempt: int) -> FrameWriter:
        stream = self._streams.setdefault(run_id, _Stream())
        stream.attempt = max(stream.attempt, attempt)

        def append(frames: Sequence[str | None], error: dict[str, Any] | None) -> None:
            if attempt < stream.attempt:
                raise LeaseLost
            self._store(run_id, stream, frames, error)

        return FrameWriter(append, run=here, flush_ms=self._flush_ms)

    def _store(self, run_id: str, stream: _Stream, frames: Sequence[str | None], error: dict[str, Any] | None) -> None:
        for frame in frames:
            if stream.ended:
                break
            stream.ended = frame is None
            number = len(stream.frames) + 1
            stream.frames.append(NumberedFrame(seq=number, frame=frame, error=error if frame is None else None))
        stream.written = time.monotonic()
        self._wakes.publish(run_id)

    async def subscribe(self, run_id: str, after: int = 0) -> AsyncIterator[NumberedFrame]:
        with self._wakes.listening(run_id) as bell:
            while True:
                stream = self._streams.get(run_id)
                for frame in stream.frames[after:] if stream else ():
                    yield frame
                    after = frame.seq
                    if frame.terminal:
                        return
                await bell.wait(WAIT_SECONDS)

    def finish(self, run_id: str, frames: Sequence[str], error: dict[str, Any] | None = None) -> None:
        stream = self._streams.setdefault(run_id, _Stream())
        self._store(run_id, stream, [*frames, None], error)

    def stored(self, run_id: str) -> list[NumberedFrame]:
        """Every row that is there, oldest first."""
        stream = self._streams.get(run_id)
        return list(stream.frames) if stream else []

    def close(self, run_id: str) -> None:
        self._streams.pop(run_id, None)

    def has(self, run_id: str) -> bool:
        return run_id in self._streams

    def purge_expired(self) -> int:
        if not self._ttl:
            return 0
        cutoff = time.monotonic() - self._ttl
        stale = [run_id for run_id, stream in self._streams.items() if stream.written < cutoff]
        for run_id in stale:
            self.close(run_id)
        return len(stale)
