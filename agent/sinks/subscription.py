"""What was read for one follower and it has not taken yet, within bounds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Self

from agent.domain.snapshots import NumberedFrame
from agent.sinks.base import FellBehind

MOST_UNREAD: Final = 1000  # live frames; above that the follower is let go
READ_MORE_AT: Final = 250  # a replay is read as fast as it is taken


class Subscription:
    """An iterator over the frames of one run above a number; it lives on the loop that it was made on.

    Until it has caught up, it is read for as fast as it takes, and cannot fall behind. From then on frames are pushed,
    and the first that finds too many unread ends it: `FellBehind`, after those. `position` is that of the last frame
    put; rows are put by one thread at a time.
    """

    def __init__(self, run_id: str, after: int, *, drained: Callable[[Subscription], None]) -> None:
        self.run_id, self.position = run_id, after
        self.caught_up = False
        self.over = False  # nothing more is to be put
        self._unfinished = False  # over, and the run is not
        self._rows: deque[NumberedFrame] = deque()
        self._drained = drained
        self._loop, self._news, self._rung = asyncio.get_running_loop(), asyncio.Event(), False

    @property
    def hungry(self) -> bool:
        """Whether rows are to be read for it now."""
        return not self.over and (self.caught_up or len(self._rows) <= READ_MORE_AT)

    def put(self, rows: Sequence[NumberedFrame]) -> None:
        """Add rows above the position; what comes after the end, or after it fell behind, is dropped."""
        for row in rows:
            if self.caught_up and len(self._rows) >= MOST_UNREAD:
                self.let_go()
            if self.over:
                break
            self._rows.append(row)
            self.position, self.over = row.seq, row.terminal
        if rows:
            self._ring()

    def let_go(self) -> None:
        """End it behind what is unread; its client comes back."""
        if not self.over:
            self.over = self._unfinished = True
            self._ring()

    def _ring(self) -> None:
        if not self._rung:
            self._rung = True
            try:
                self._loop.call_soon_threadsafe(self._news.set)
            except RuntimeError:  # its loop has ended, and who followed with it
                self.over = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> NumberedFrame:
        while not self._rows:
            if self.over:
                raise FellBehind if self._unfinished else StopAsyncIteration
            await self._news.wait()
            self._news.clear()
            self._rung = False  # before the rows are looked at again: what is put from here on rings
        row = self._rows.popleft()
        if not self.caught_up and len(self._rows) == READ_MORE_AT:
            self._drained(self)
        return row
