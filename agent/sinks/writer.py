"""Writing a stream: text is gathered, everything else keeps its place, and the disk is never waited for by a delta."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from agent.domain.frames import encode, is_text
from agent.domain.model_calls import Frame

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")

FLUSH_MS = 50
SHARE = 4  # gathering takes at least so many times as long as storing did: a busy database gets fewer, bigger rows
MOST_SECONDS = 0.5  # that text is gathered for
FIRST_TEXT_AFTER = frozenset({"step-start", "step-restart"})


class Append(Protocol):
    """Store rows of a stream, on any thread: frames as text, the last one maybe the terminal row (None, its error)."""

    def __call__(self, frames: Sequence[str | None], error: dict[str, Any] | None) -> None: ...


class Run(Protocol):
    """Where rows are stored: on a thread that may wait, or right here."""

    def __call__(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What a unit of work came to, and the frames that its commit makes true; `ended` closes the stream with them."""

    result: T
    frames: Sequence[Frame] = ()
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Aside:
    """A run that speaks in the stream of the one that awaits it: its frames stand under the call that asked."""

    run_id: str
    call_id: str

    def frame(self, frame: Frame) -> Frame:
        return {"parentId": self.call_id, **frame}


class FrameWriter:
    """The one writer of a run in a process; a delegate's writes in its parent's stream, and does not end it.

    `write` never waits: rows are stored by a task of their own, one insert for all that gathered meanwhile. An error
    of such a write is raised by the next call. The first text of a step is stored at once, later text after
    `flush_ms` from the first gathered delta, and before any other frame.
    """

    def __init__(
        self,
        append: Append,
        *,
        run: Run,
        later: Run | None = None,
        flush_ms: int = FLUSH_MS,
        closed: Callable[[], None] | None = None,
        aside: Aside | None = None,
    ) -> None:
        self._aside = aside
        self._append, self._run, self._later = append, run, later or run
        self._gathered = True  # the rows that wait are text that was gathered, nothing that somebody waits for
        self._lent = False  # a unit of work has the rows that waited, and comes back with more
        self._flush_seconds = self._gather_seconds = flush_ms / 1000
        self._closed = closed
        self._text: list[str] = []
        self._rows: list[str | None] = []
        self._error: dict[str, Any] | None = None
        self._failure: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._first_text = False
        self._ended = False
        self._loop = asyncio.get_running_loop()

    def write(self, frame: Frame) -> None:
        """Take a frame; raises the failure of an earlier write, and after the end of the stream."""
        if self._failure is not None or self._ended:
            self._refuse()
        if self._aside is not None:
            frame = self._aside.frame(frame)
        if is_text(frame):
            if self._timer is not None:  # gathering goes on: this is all that a delta costs
                self._text.append(frame["text"])
            else:
                self._gather(frame["text"])
            return
        self._give_text()
        self._first_text = frame["kind"] in FIRST_TEXT_AFTER
        self._give(encode(frame))

    def write_soon(self, frame: Frame) -> None:
        """Take a frame from any thread."""
        self._loop.call_soon_threadsafe(self.write, frame)

    async def behind(self, run: Run, work: Callable[[], Done[U]]) -> U:
        """Do a unit of work in one hop: before its commit is stored what waited, behind it what it made true.

        So what was said is never less than what is recorded, whatever becomes of this process in between.
        """
        self._lent = True
        try:
            self._give_text()
            await self._stored()
            rows = self._take()
            done = await run(self._work, work, rows)
        finally:
            self._lent = False
            self._store_soon()
        self._ended |= done.ended
        return done.result

    def _work(self, work: Callable[[], Done[U]], waiting: list[str | None]) -> Done[U]:
        if waiting:
            self._append(waiting, None)
        done = work()
        rows: list[str | None] = [encode(self._aside.frame(frame) if self._aside else frame) for frame in done.frames]
        if done.ended and self._aside is None:
            rows.append(None)
        if rows:
            self._append(rows, None)
        return done

    async def flush(self) -> None:
        """Return when everything written so far is stored."""
        self._give_text()
        await self._stored()

    async def end(self) -> None:
        """Close the stream; a second end adds nothing."""
        await self._close(None)

    async def fail(self, error: dict[str, Any]) -> None:
        """Close the stream of a failed run with `{code, message}`."""
        await self._close(error)

    def abandon(self) -> None:
        """Let go of the stream without ending it: another worker goes on with it, or nobody will."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._let_go()

    def _let_go(self) -> None:
        closed, self._closed = self._closed, None
        if closed is not None:
            closed()

    async def _close(self, error: dict[str, Any] | None) -> None:
        if not self._ended:
            self._give_text()
            self._ended = True
            self._error = error
            if self._aside is None:
                self._give(None)
        try:
            await self._stored()
        finally:
            self._let_go()

    async def _stored(self) -> None:
        while self._task is not None:
            await asyncio.shield(self._task)
        if self._failure is not None:
            self._refuse()

    def _gather(self, text: str) -> None:
        if self._first_text or not self._flush_seconds:
            self._first_text = False
            self._give(encode({"kind": "text", "text": text}))
            return
        self._text.append(text)
        self._timer = self._loop.call_later(self._gather_seconds, self._give_text)

    def _give_text(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._text:
            text = "".join(self._text)
            self._text.clear()
            self._give(encode({"kind": "text", "text": text}), gathered=True)

    def _give(self, row: str | None, *, gathered: bool = False) -> None:
        self._rows.append(row)
        self._gathered &= gathered
        self._store_soon()

    def _take(self) -> list[str | None]:
        rows, self._rows, self._gathered = self._rows, [], True
        return rows

    def _store_soon(self) -> None:
        if self._rows and self._task is None and not self._lent and self._failure is None:  # no gap, ever
            self._task = self._loop.create_task(self._store())

    async def _store(self) -> None:
        try:
            while self._rows and not self._lent:
                run, began = self._later if self._gathered else self._run, self._loop.time()
                rows = self._take()
                await run(self._append, rows, self._error if rows[-1] is None else None)
                took = SHARE * (self._loop.time() - began)
                self._gather_seconds = max(self._flush_seconds, min(took, MOST_SECONDS))
        except BaseException as failure:
            self._failure = failure
            if not isinstance(failure, Exception) and not getattr(failure, "agent_signal", False):
                raise
        finally:
            self._task = None

    def _refuse(self) -> None:
        if self._failure is not None:
            raise self._failure
        raise RuntimeError("the stream of this run has ended")
