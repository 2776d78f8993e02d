"""One client's place in a run's stream, with its bounds: an SSE response and a socket's subscription alike."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from agent.domain.snapshots import NumberedFrame
from agent.sinks.base import FellBehind

AHEAD: Final = 64  # frames that are read before the client takes them


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long a stream may be silent, and how much it may write before its client must come back."""

    ping_seconds: float = 15
    # A server without back-pressure does not say what its client has not read, so all that was written counts.
    byte_limit: int = 8 * 1024 * 1024
    # A process can write so many times a second, whatever is in each: the more it has who follow, the longer frames are
    # gathered for each of them, up to the most, so that other requests have their turn (`bench.followers`).
    share_seconds: float = 0.0008
    most_gathered_seconds: float = 0.4


PACE: Final = Pace()
_here: set[Follower] = set()  # everybody whom this process feeds, on whichever loop


class Follower:
    """Batches of frames for one client: all that are there, each time; an empty one after a silence.

    Iterating ends after the run's last frame. It raises `StreamFailed` when the run failed, and `FellBehind` when the
    client has to come back from its cursor: it left too much unread, or too much was written to it.

        async with Follower(follow(run_id, after)) as follower:
            async for batch in follower:
                follower.wrote(await send(batch))

    A task of its own reads a few frames ahead: to wait for one with a deadline would cancel the reading.
    """

    def __init__(self, frames: AsyncIterator[NumberedFrame], pace: Pace = PACE) -> None:
        self._frames, self._pace = frames, pace
        self._queue: asyncio.Queue[NumberedFrame] = asyncio.Queue(AHEAD)
        self._news = asyncio.Event()
        self._written = 0
        self._fed_at = -math.inf
        self._reading: asyncio.Task[None] | None = None

    def wrote(self, size: int) -> None:
        """Count what was written to the client; above the limit there is no next batch."""
        self._written += size

    async def __aenter__(self) -> Self:
        self._reading = asyncio.create_task(self._read())
        self._reading.add_done_callback(lambda _: self._news.set())
        _here.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._reading is not None
        _here.discard(self)
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[NumberedFrame]:
        assert self._reading is not None, "a follower is entered before it is read"
        if self._written >= self._pace.byte_limit:
            raise FellBehind
        while True:
            ended = self._reading.done()  # looked at before the queue is: what is put later is found next time round
            if not ended and (pause := self._gathers_for()) > 0:
                await asyncio.sleep(pause)
            if batch := [self._queue.get_nowait() for _ in range(self._queue.qsize())]:
                self._fed_at = time.monotonic()
                return batch
            if ended:
                await self._reading  # raises what ended it
                raise StopAsyncIteration
            if not await self._rang():
                return []
            self._news.clear()

    def _gathers_for(self) -> float:
        """For how long yet frames are gathered; nothing while there are few who follow, or after a silence."""
        if self._queue.empty() or self._queue.full():
            return 0.0
        share = min(len(_here) * self._pace.share_seconds, self._pace.most_gathered_seconds)
        return self._fed_at + share - time.monotonic()

    async def _read(self) -> None:
        try:
            async for frame in self._frames:
                await self._queue.put(frame)
                self._news.set()
        finally:
            if isinstance(self._frames, AsyncGenerator):
                await self._frames.aclose()

    async def _rang(self) -> bool:
        try:
            async with asyncio.timeout(self._pace.ping_seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        return True
