"""The promise of a sink (spec 05 §5): where frames are kept and followed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from agent.domain.snapshots import NumberedFrame
from agent.sinks.writer import Aside, FrameWriter


class FellBehind(Exception):
    """A follower left too much unread and is let go; its client comes back from the last number it has."""


class FrameSink(Protocol):
    """A sink may also have `stored(run_id)` and `unended(since, until, limit)`.

    The first answers every row that is there, so that whoever takes a run over tells what its last worker did not; the
    second the runs settled in that time whose stream was left open.
    """

    def open(self, run_id: str, attempt: int, aside: Aside | None = None) -> FrameWriter:
        """The writer of a run, on the running loop; writes of an older attempt are refused with `LeaseLost`.

        `aside`: a delegate speaks in the stream of the run, and the attempt is the delegate's.
        """

    def subscribe(self, run_id: str, after: int = 0) -> AsyncIterator[NumberedFrame]:
        """Replay above `after`, then follow; ends after the terminal row, which is yielded too."""

    def finish(self, run_id: str, frames: Sequence[str], error: dict[str, Any] | None = None) -> None:
        """Write last frames and the terminal row of a run that no worker drives; nothing when it has ended."""

    def close(self, run_id: str) -> None:
        """Drop everything of the run."""

    def has(self, run_id: str) -> bool: ...

    def purge_expired(self) -> int:
        """Remove the streams whose last write is older than the TTL; how many runs."""
