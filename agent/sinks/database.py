"""Frames as rows: followed by every process on the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import connections
from django.utils.module_loading import import_string

from agent.domain.snapshots import NumberedFrame
from agent.sink_options import SinkOptions
from agent.sinks.broadcast import shared_layer
from agent.sinks.followers import Positions
from agent.sinks.layer import LayerEar, tell
from agent.sinks.pump import MAX_SEQ, PAGE, Ear
from agent.sinks.pumped import PumpedSink, Speaker
from agent.store import in_store, in_store_later
from agent.store.base import AgentStore


class DatabaseSink(PumpedSink):
    """Rows of `agent_stream_frame`; options: `SinkOptions`."""

    def __init__(self, store: AgentStore, **options: Any) -> None:  # noqa: ANN401 - checked by SinkOptions
        given = SinkOptions(**options)
        self._ear = _ear(given.listen_database or getattr(store, "db", None))
        super().__init__(store, given, run=in_store, later=in_store_later, ear=self._ear)
        self._store = store

    def _appended(
        self, run_id: str, last: int | None, frames: Sequence[str | None], error: dict[str, Any] | None
    ) -> None:
        super()._appended(run_id, last, frames, error)
        if last is not None:
            self._tell(run_id, last)

    def _tell(self, run_id: str, last: int) -> None:
        if isinstance(self._ear, LayerEar):  # PostgreSQL's notices ride with the insert
            tell(run_id, last)

    def _append(self, run_id: str, speaker: Speaker, frames: Sequence[str | None], error: dict[str, Any] | None) -> int:
        by, attempt = speaker
        if error is None and by != run_id:
            return self._store.append_frames(run_id, frames, attempt=attempt, by=by)
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
            self._store.on_commit(partial(self._finished, run_id))

    def _finished(self, run_id: str) -> None:
        self._pump.read_now(run_id)
        self._tell(run_id, MAX_SEQ)

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


def _ear(alias: str | None) -> Ear | None:
    """What hears of other processes: LISTEN where it serves, else a channel layer that is shared, else nothing."""
    if alias is not None and connections[alias].vendor == "postgresql":
        try:
            made: Ear = import_string("agent.sinks.listen.PostgresEar")(alias)
        except ImportError:  # psycopg2
            pass
        else:
            return made
    return LayerEar() if shared_layer() is not None else None
