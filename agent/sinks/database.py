"""Frames as rows: followed by every process on the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from agent.domain.snapshots import NumberedFrame
from agent.sink_options import SinkOptions
from agent.sinks.followers import Positions
from agent.sinks.pump import PAGE
from agent.sinks.pumped import PumpedSink
from agent.store import in_store, in_store_later
from agent.store.base import AgentStore


class DatabaseSink(PumpedSink):
    """Rows of `agent_stream_frame`; options: `SinkOptions`."""

    def __init__(self, store: AgentStore, **options: Any) -> None:  # noqa: ANN401 - checked by SinkOptions
        super().__init__(store, SinkOptions(**options), run=in_store, later=in_store_later)
        self._store = store

    def _append(self, run_id: str, attempt: int, frames: Sequence[str | None], error: dict[str, Any] | None) -> int:
        if error is None:
            return self._store.append_frames(run_id, frames, attempt=attempt)
        with self._store.atomic():
            if len(frames) > 1:
                self._store.append_frames(run_id, frames[:-1], attempt=attempt)
            return self._store.append_frame(run_id, None, error, attempt=attempt)

    async def _read(self, positions: Positions, limit: int) -> Mapping[str, Sequence[NumberedFrame]]:
        return await in_store(self._store.read_streams, positions, limit)

    def finish(self, run_id: str, frames: Sequence[str], error: dict[str, Any] | None = None) -> None:
        if self._store.end_stream(run_id, frames, error):
            self._store.on_commit(partial(self._pump.read_now, run_id))

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
        if not self._options.ttl_seconds:
            return 0
        cutoff = int((self._store.clock() - timedelta(seconds=self._options.ttl_seconds)).timestamp() * 1000)
        gone = 0
        while run_ids := self._store.lapsed_streams(cutoff, self._options.purge_batch):
            self._store.remove_frames(run_ids)
            gone += len(run_ids)
        return gone
