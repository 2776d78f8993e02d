"""Streams in memory: capability `frames`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from agent.domain.clock import epoch_ms
from agent.domain.snapshots import NumberedFrame
from agent.domain.states import TERMINAL_RUN
from agent.errors import LeaseLost
from agent.testing.memory.state import State, StreamEnds
from agent.testing.memory.unit import unit
from agent.testing.memory.values import ID, cleaned, copied, exact


class Frames(State):
    @unit
    def append_frame(
        self, run_id: str, frame: str | None, error: dict[str, Any] | None = None, *, attempt: int | None = None
    ) -> int:
        self._fence(run_id, attempt)
        return self._append(run_id, [frame], copied(error))

    @unit
    def append_frames(
        self, run_id: str, frames: Sequence[str | None], *, attempt: int | None = None, by: str | None = None
    ) -> int:
        self._fence(by or run_id, attempt)
        return self._append(run_id, frames, None) if frames else last_number(self, run_id)

    def _fence(self, run_id: str, attempt: int | None) -> None:
        run = self.run_rows.get(run_id)
        if attempt is not None and run is not None and run.attempt > attempt:
            raise LeaseLost

    def _append(self, run_id: str, frames: Sequence[str | None], error: dict[str, Any] | None) -> int:
        exact("run_id", run_id, ID)
        first = last_number(self, run_id) + 1
        for seq, frame in enumerate(frames, start=first):
            self.frames.put((run_id, seq), NumberedFrame(seq=seq, frame=cleaned(frame), error=error))
        last = first + len(frames) - 1
        ends = self.streams.get(run_id)
        first = first if ends is None else ends.first
        self.streams.put(run_id, StreamEnds(first=first, last=last, written_ms=epoch_ms(self.clock())))
        return last

    @unit
    def read_frames(self, run_id: str, after: int, limit: int = 500) -> list[NumberedFrame]:
        ends = self.streams.get(run_id)
        if ends is None:
            return []
        first = max(after + 1, ends.first)
        numbers = range(first, min(ends.last, first + max(limit, 0) - 1) + 1)
        rows = [self.frames[run_id, seq] for seq in numbers]
        return [row if row.error is None else replace(row, error=copied(row.error)) for row in rows]

    def read_streams(self, positions: Mapping[str, int], limit: int = 500) -> dict[str, list[NumberedFrame]]:
        found: dict[str, list[NumberedFrame]] = {}
        for run_id, after in sorted(positions.items()):
            if rows := self.read_frames(run_id, after, limit):
                found[run_id] = rows
                limit -= len(rows)
        return found

    @unit
    def has_frames(self, run_id: str) -> bool:
        return run_id in self.streams

    @unit
    def end_stream(self, run_id: str, frames: Sequence[str], error: dict[str, Any] | None = None) -> bool:
        if self._ended(run_id):
            return False
        if frames:
            self._append(run_id, frames, None)
        self._append(run_id, [None], copied(error))
        return True

    @unit
    def unended_streams(self, since: datetime, until: datetime, limit: int) -> list[str]:
        settled = [run for _, run in self.run_rows.items() if run.settled_at and since <= run.settled_at < until]
        unended = [run for run in settled if run.id in self.streams and not self._ended(run.id)]
        unended.sort(key=lambda run: (run.settled_at, run.id))
        return [run.id for run in unended[: max(limit, 0)]]

    def _ended(self, run_id: str) -> bool:
        ends = self.streams.get(run_id)
        return ends is not None and self.frames[run_id, ends.last].frame is None

    @unit
    def remove_frames(self, run_ids: Sequence[str]) -> int:
        return remove_streams(self, run_ids)

    @unit
    def lapsed_streams(self, cutoff_ms: int, limit: int = 200) -> list[str]:
        lapsed = [(ends.written_ms, run_id) for run_id, ends in self.streams.items() if ends.written_ms < cutoff_ms]
        return [run_id for _, run_id in sorted(lapsed)[: max(limit, 0)]]

    @unit
    def last_seq(self, run_id: str) -> int:
        return last_number(self, run_id)


def last_number(state: State, run_id: str) -> int:
    """The number of the newest frame, also when it was purged."""
    ends = state.streams.get(run_id)
    if ends is not None:
        return ends.last
    run = state.run_rows.get(run_id)
    return run.frame_base if run else 0


def remove_streams(state: State, run_ids: Iterable[str]) -> int:
    """Remove whole streams; a run that is not over remembers its last number, so that it goes on with higher ones."""
    removed = 0
    for run_id in dict.fromkeys(run_ids):
        ends = state.streams.get(run_id)
        if ends is None:
            continue
        run = state.run_rows.get(run_id)
        if run is not None and run.status not in TERMINAL_RUN:
            state.run_rows.put(run_id, replace(run, frame_base=ends.last))
        for seq in range(ends.first, ends.last + 1):
            state.frames.drop((run_id, seq))
            removed += 1
        state.streams.drop(run_id)
    return removed
