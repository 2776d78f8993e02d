"""Frames as rows: followed by every process on the database, woken at once inside the writer's own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from agent.domain.snapshots import NumberedFrame
from agent.domain.states import TERMINAL_RUN
from agent.sinks.wake import Wakes
from agent.sinks.writer import FLUSH_MS, FrameWriter
from agent.store import in_store, in_store_later
from agent.store.base import AgentStore

PAGE = 500
RECENT = 200  # rows of an open stream that its own process keeps at hand
KEEP_SECONDS = 1.0  # and that long after its end, for followers who have not read it yet
LOOK_SECONDS = 30  # how often a silent follower looks at the run's row


class Recent:
    """The last rows that this process has stored of a stream, for its followers in the same process.

    Only rows that are committed get here, without gaps; whoever asks for older ones reads the database.
    """

    def __init__(self) -> None:
        self._rows: deque[NumberedFrame] = deque(maxlen=RECENT)

    def add(self, first: int, frames: Sequence[str | None], error: dict[str, Any] | None) -> None:
        if self._rows and self._rows[-1].seq + 1 != first:
            self._rows.clear()  # another process has written in between
        for seq, frame in enumerate(frames, start=first):
            self._rows.append(NumberedFrame(seq=seq, frame=frame, error=error if frame is None else None))

    def after(self, seq: int) -> list[NumberedFrame]:
        """The rows above `seq`; none when some of them are not here."""
        rows = tuple(self._rows)  # one step: rows are added on another thread
        if not rows or rows[0].seq > seq + 1:
            return []
        return [row for row in rows if row.seq > seq]


class DatabaseSink:
    """Rows of `agent_stream_frame`. Options: `flush_ms`, `poll_ms`, `idle_poll_ms`, `idle_after_ms`, `ttl_seconds`."""

    def __init__(
        self,
        store: AgentStore,
        *,
        flush_ms: int = FLUSH_MS,
        poll_ms: int = 250,
        idle_poll_ms: int = 1000,
        idle_after_ms: int = 5000,
        ttl_seconds: int = 3600,
    ) -> None:
        self._store = store
        self._flush_ms = flush_ms
        self._poll = poll_ms / 1000
        self._idle_poll = max(idle_poll_ms, poll_ms) / 1000
        self._idle_after = idle_after_ms / 1000
        self._ttl = ttl_seconds
        self._wakes = Wakes()
        self._writers: dict[tuple[str, int], FrameWriter] = {}
        self._recent: dict[str, Recent] = {}

    def open(self, run_id: str, attempt: int) -> FrameWriter:
        key = (run_id, attempt)
        if key not in self._writers:
            self._writers[key] = self._writer(run_id, attempt)
        return self._writers[key]

    def _writer(self, run_id: str, attempt: int) -> FrameWriter:
        recent = self._recent[run_id] = Recent()

        def append(frames: Sequence[str | None], error: dict[str, Any] | None) -> None:
            last = self._append(run_id, attempt, frames, error)
            recent.add(last - len(frames) + 1, frames, error)
            self._wakes.publish(run_id)

        def forget() -> None:
            self._writers.pop((run_id, attempt), None)
            asyncio.get_running_loop().call_later(KEEP_SECONDS, self._drop_recent, run_id, recent)

        return FrameWriter(append, run=in_store, later=in_store_later, flush_ms=self._flush_ms, closed=forget)

    def _drop_recent(self, run_id: str, recent: Recent) -> None:
        if self._recent.get(run_id) is recent:
            del self._recent[run_id]

    def _append(
        self, run_id: str, attempt: int | None, frames: Sequence[str | None], error: dict[str, Any] | None
    ) -> int:
        if error is None:
            return self._store.append_frames(run_id, frames, attempt=attempt)
        with self._store.atomic():
            if len(frames) > 1:
                self._store.append_frames(run_id, frames[:-1], attempt=attempt)
            return self._store.append_frame(run_id, None, error, attempt=attempt)

    async def subscribe(self, run_id: str, after: int = 0) -> AsyncIterator[NumberedFrame]:
        with self._wakes.listening(run_id) as bell:
            silent = 0.0
            while True:
                page = self._at_hand(run_id, after) or await in_store(self._store.read_frames, run_id, after, PAGE)
                for frame in page:
                    yield frame
                    if frame.terminal:
                        return
                if page:
                    after, silent = page[-1].seq, 0.0
                    if len(page) == PAGE:
                        continue
                wait = self._poll if silent < self._idle_after else self._idle_poll
                silent += 0 if await bell.wait(wait) else wait
                if silent >= LOOK_SECONDS:
                    silent = self._idle_after
                    closing = await in_store(self._closing, run_id, after)
                    if closing is not None:
                        yield closing
                        return

    def _at_hand(self, run_id: str, after: int) -> list[NumberedFrame]:
        """Rows that this process has just stored itself; none = ask the database."""
        recent = self._recent.get(run_id)
        return [] if recent is None else recent.after(after)

    def _closing(self, run_id: str, after: int) -> NumberedFrame | None:
        """The end of a run that is over without a terminal row, so that nobody waits for ever."""
        scope = self._store.run_scope(run_id)
        if scope is not None and scope.status not in TERMINAL_RUN:
            return None
        if self._store.last_seq(run_id) > after:
            return None
        failed = scope is None or scope.status == "failed"
        error = {"code": (scope and scope.error_code) or "run_failed", "message": ""} if failed else None
        return NumberedFrame(seq=after + 1, frame=None, error=error)

    def finish(self, run_id: str, frames: Sequence[str], error: dict[str, Any] | None = None) -> None:
        if self._store.end_stream(run_id, frames, error):
            self._wakes.publish(run_id)

    def stored(self, run_id: str) -> list[NumberedFrame]:
        """Every row that is there, oldest first."""
        rows = page = self._store.read_frames(run_id, 0, PAGE)
        while len(page) == PAGE:
            page = self._store.read_frames(run_id, page[-1].seq, PAGE)
            rows = rows + page
        return rows

    def unended(self, since: datetime, until: datetime, limit: int) -> list[str]:
        """Runs settled in this time whose stream was left open."""
        return self._store.unended_streams(since, until, limit)

    def close(self, run_id: str) -> None:
        self._store.remove_frames([run_id])

    def has(self, run_id: str) -> bool:
        return self._store.has_frames(run_id)

    def purge_expired(self) -> int:
        if not self._ttl:
            return 0
        cutoff = self._store.clock() - timedelta(seconds=self._ttl)
        gone = 0
        while run_ids := self._store.lapsed_streams(int(cutoff.timestamp() * 1000)):
            self._store.remove_frames(run_ids)
            gone += len(run_ids)
        return gone
