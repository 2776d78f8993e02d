"""The one reader of a process: it reads rows for all followers of all runs."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Final, Protocol

from agent.domain.runs import RunState
from agent.domain.snapshots import NumberedFrame
from agent.domain.states import RunStatus
from agent.sink_options import SinkOptions
from agent.sinks.followers import Followers, Positions
from agent.sinks.subscription import Subscription
from agent.store import in_store
from agent.store.base import AgentStore

PAGE: Final = 500
SETTLING: Final = timedelta(seconds=2)  # the last frames of a run follow its settlement
RETRY_SECONDS: Final = 1.0  # after rows could not be read, or wake-ups not be heard
ATTEND_SECONDS: Final = 2.0
LINGER_SECONDS: Final = 30.0  # without a follower; then the thread ends, and what it listens to is closed
GONE: Final = {"code": "stream_not_found", "message": "The stream is no longer kept; reload the conversation."}

MAX_SEQ: Final = 2**53

logger = logging.getLogger("agent.sinks")


class Source(Protocol):
    """Where rows are read: above a number of each run, oldest first, at most `limit` in all."""

    def __call__(self, positions: Positions, limit: int) -> Awaitable[Mapping[str, Sequence[NumberedFrame]]]: ...


class Ear(Protocol):
    """Hears of rows that other processes have stored."""

    async def attend(self, run_ids: Collection[str]) -> None:
        """These runs have followers here, others have not; called before they are read for the first time."""

    async def listen(self, pump: Pump) -> None:
        """Call `pump.hears` once wake-ups arrive and `pump.heard` for each; raises when they no longer do."""


class Pump:
    """It lives on a thread with a loop of its own while there are followers; these live on any loop.

    A run is read when a follower joins or has drained its replay, when a wake-up tells of rows, and when its poll is
    due. What this process writes is pushed without being read.
    """

    def __init__(
        self, source: Source, store: AgentStore | None, options: SinkOptions, *, ear: Ear | None = None
    ) -> None:
        self._source, self._store, self._ear = source, store, ear
        self._followers = Followers(options, self._ring)
        self._lock = threading.Lock()  # of the next three
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        self._bell = asyncio.Event()
        self.publish, self.heard = self._followers.publish, self._followers.heard

    @contextmanager
    def following(self, run_id: str, after: int) -> Iterator[Subscription]:
        """The frames above `after`, replayed and then live, for as long as the block runs."""
        with self._followers.following(run_id, after) as subscription:
            self._start()
            yield subscription

    def read_now(self, run_id: str) -> None:
        """Rows of this run were stored in this process, and are not at hand."""
        self.heard(run_id, MAX_SEQ)

    def followed(self) -> Collection[str]:
        """The runs that have followers in this process."""
        return tuple(self._followers)

    def hears(self) -> None:
        """Wake-ups are pushed from now on; what was missed until then is read."""
        self._followers.pushed = True
        self._followers.read_all()

    def stop(self) -> None:
        """Let everybody go, end the thread and what it listens to."""
        self._followers.let_go()
        with self._lock:
            thread, self._stopping = self._thread, True
        self._ring()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=10)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._stopping = False
                self._thread = threading.Thread(target=self._serve, name="agent-stream", daemon=True)
                self._thread.start()

    def _ring(self) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it has just ended; who joins starts another
                loop.call_soon_threadsafe(self._bell.set)

    def _serve(self) -> None:
        # A loop of selectors: psycopg asks for one, and it is not the usual one everywhere.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self._bell = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        listening = None if self._ear is None else asyncio.create_task(self._listen(self._ear))
        try:
            while not self._ended(alone=not await self._something(self._followers.seconds())):
                await self._turn()
        finally:
            if listening is not None:
                while not listening.done():  # a client that is just connecting may swallow it once
                    listening.cancel()
                    await asyncio.wait({listening}, timeout=0.1)
                self._deaf()

    async def _something(self, seconds: float) -> bool:
        """Wait until something is to be done; False after a long time without a follower."""
        alone = not self._followers
        try:
            async with asyncio.timeout(LINGER_SECONDS if alone else min(seconds, LINGER_SECONDS)):
                await self._bell.wait()
        except TimeoutError:
            return not alone
        self._bell.clear()
        return True

    def _ended(self, *, alone: bool) -> bool:
        """Whether this thread goes; who joins from then on starts another."""
        with self._lock:
            if self._stopping or (alone and not self._followers):
                self._thread = self._loop = None
                return True
            return False

    async def _turn(self) -> None:
        try:
            if self._ear is not None and self._followers.changed:
                self._followers.changed = False
                await self._attend(self._ear)
            while positions := self._followers.due():
                await self._read(positions)
            if positions := self._followers.silent():
                await self._look(positions)
        except Exception:
            logger.exception("streams cannot be read at the moment; their followers wait")
            await asyncio.sleep(RETRY_SECONDS)
            self._followers.read_all()

    async def _attend(self, ear: Ear) -> None:
        try:
            await asyncio.wait_for(ear.attend(self.followed()), ATTEND_SECONDS)
        except Exception:
            logger.warning("wake-ups of some runs may not be heard; their followers poll", exc_info=True)

    async def _read(self, positions: Positions) -> Collection[str]:
        """Read for the followers of these runs; which of them had rows."""
        rows = await self._source(positions, PAGE)
        self._followers.hand(positions, rows, full=sum(map(len, rows.values())) >= PAGE)
        return [run_id for run_id, found in rows.items() if found]

    async def _look(self, positions: Positions) -> None:
        """End those whose run is over without a terminal row: its rows died with a process, or were purged."""
        if self._store is None or "runs" not in self._store.capabilities:
            return
        states = await in_store(self._store.run_states, list(positions))
        now = self._store.clock()
        over = {run_id for run_id in positions if _is_over(states.get(run_id), now)}
        for run_id in positions.keys() - over:
            if (state := states.get(run_id)) is not None and state.settled_at is not None:
                self._followers.look_again(run_id, SETTLING.total_seconds())
        if over:
            for run_id in over.difference(await self._read({each: positions[each] for each in over})):
                self._followers.close(run_id, _error_of(states.get(run_id)))
            for run_id in over:
                self._followers.look_again(run_id, 0)

    async def _listen(self, ear: Ear) -> None:
        told = False
        while True:
            try:
                await ear.listen(self)
            except Exception:
                if not told:
                    logger.exception("wake-ups cannot be heard at the moment; followers poll")
            told = not self._followers.pushed  # once for each time that it broke
            self._deaf()
            await asyncio.sleep(RETRY_SECONDS)

    def _deaf(self) -> None:
        self._followers.pushed = False
        self._followers.changed = True  # who listens anew attends to all runs anew


def _is_over(state: RunState | None, now: datetime) -> bool:
    return state is None or (state.settled_at is not None and now - state.settled_at >= SETTLING)


def _error_of(state: RunState | None) -> dict[str, str] | None:
    if state is None:
        return GONE
    return {"code": state.error_code or "run_failed", "message": ""} if state.status == RunStatus.FAILED else None
