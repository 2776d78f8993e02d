"""SINK_CONTRACT (spec 05 §8): what every sink promises to who writes and who follows, in one process and in two."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent.db import in_db
from agent.domain.snapshots import NumberedFrame
from agent.errors import LeaseLost
from agent.sinks.base import FrameSink
from agent.sinks.writer import FrameWriter
from agent.store.base import AgentStore
from agent.testing.contracts.base import Case, ContractMismatch, expect, same
from agent.testing.contracts.rows import claimed, completed, new_run, running
from agent.testing.contracts.store import SettableClock

RUN = "run-1"
TTL = 100
LONG_MS = 60_000
SECONDS = 30  # a case that waits longer has failed
FIRST = {"kind": "step-start"}


class Elsewhere(Protocol):
    """A second process on the same sink, such as `agent.testing.sink_process.OtherProcess`."""

    def ask(self, do: str, **fields: object) -> Any: ...  # noqa: ANN401
    def answer(self) -> Any: ...  # noqa: ANN401


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSubject:
    """A sink to be shown: `make` one with these options, on the subject's storage, which is empty at first.

    `elsewhere` makes the second process use these options too; None for a sink of one process. `pushes` says whether
    wake-ups between processes are pushed.
    """

    make: Callable[..., FrameSink]
    store: AgentStore
    clock: SettableClock
    elsewhere: Callable[..., Elsewhere] | None = None
    pushes: bool = True


SinkCase = Case[SinkSubject]
SINK_CONTRACT: list[SinkCase] = []
Play = Callable[[SinkSubject], Coroutine[Any, Any, None]]


def _case(name: str, *, processes: int = 1) -> Callable[[Play], Play]:
    """Add a case; one of two processes holds by itself for a sink of one."""

    def decorate(play: Play) -> Play:
        def run(subject: SinkSubject) -> None:
            if processes == 1 or subject.elsewhere is not None:
                asyncio.run(_in_time(play(subject)))

        SINK_CONTRACT.append(Case(name, run))
        return play

    return decorate


async def _in_time(case: Coroutine[Any, Any, None]) -> None:
    try:
        await asyncio.wait_for(case, SECONDS)
    except TimeoutError as error:
        raise ContractMismatch(f"somebody waits for longer than {SECONDS} seconds") from error


def _other(subject: SinkSubject, **options: object) -> Elsewhere:
    assert subject.elsewhere is not None
    return subject.elsewhere(**options)


def title(text: object) -> dict[str, Any]:
    return {"kind": "title", "title": str(text)}


def text(delta: str) -> dict[str, Any]:
    return {"kind": "text", "text": delta}


async def written(writer: FrameWriter, *frames: Mapping[str, Any]) -> None:
    for frame in frames:
        writer.write(dict(frame))
    await writer.flush()


async def followed(sink: FrameSink, after: int = 0, run_id: str = RUN) -> list[NumberedFrame]:
    return [row async for row in sink.subscribe(run_id, after)]


def told(rows: Sequence[NumberedFrame]) -> list[Any]:
    """What the rows say: a text, a title, a kind, None for the end."""
    frames = [None if row.frame is None else json.loads(row.frame) for row in rows]
    return [frame and (frame.get("text") or frame.get("title") or frame["kind"]) for frame in frames]


def numbers(rows: Sequence[NumberedFrame]) -> list[int]:
    return [row.seq for row in rows]


@_case("01 frames come in the order they were written, then the end")
async def _order(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make()
    writer = sink.open(RUN, 1)
    await written(writer, FIRST, text("a"), title("b"))
    await writer.end()
    rows = await followed(sink)
    same(told(rows), ["step-start", "a", "b", None], "frames")
    same(numbers(rows), [1, 2, 3, 4], "numbers")


@_case("02 what one process writes is read in another that was there before", processes=2)
async def _across(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    other, sink = _other(subject), subject.make()
    other.ask("follow", run=RUN, after=0)
    writer = sink.open(RUN, 1)
    await written(writer, FIRST, title("a"))
    await writer.end()
    rows = (await asyncio.to_thread(other.answer))["rows"]
    same([row[0] for row in rows], [1, 2, 3], "numbers")
    same([row[1] is None for row in rows], [False, False, True], "the end")


@_case("03 who comes late gets what was written, then what is")
async def _late(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make()
    writer = sink.open(RUN, 1)
    await written(writer, title("a"), title("b"))
    rows = sink.subscribe(RUN)
    seen = [await anext(rows), await anext(rows)]
    await written(writer, title("c"))
    await writer.end()
    seen += [row async for row in rows]
    same(told(seen), ["a", "b", "c", None], "frames")


@_case("04 a failed run is replayed, then its error")
async def _failed(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink, error = subject.make(), {"code": "model_error", "message": "Sorry."}
    writer = sink.open(RUN, 1)
    await written(writer, title("a"))
    await writer.fail(error)
    rows = await followed(sink)
    same(told(rows), ["a", None], "frames")
    same(rows[-1].error, error, "the error")


@_case("05 quick deltas are gathered, and never across another frame")
async def _gathered(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make()
    writer = sink.open(RUN, 1)
    deltas = [f"{number} " for number in range(60)]
    for frame in (FIRST, *map(text, deltas[:30]), title("middle"), *map(text, deltas[30:])):
        writer.write(dict(frame))
    await writer.end()
    said = told(await followed(sink))
    middle = said.index("middle")
    same("".join(said[1:middle]), "".join(deltas[:30]), "text before the frame")
    same("".join(said[middle + 1 : -1]), "".join(deltas[30:]), "text behind it")
    expect(len(said) < 60, f"{len(said)} rows for 60 deltas")


@_case("06 gathered text is written by itself when the window ends")
async def _window(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make(flush_ms=20)
    writer = sink.open(RUN, 1)
    for frame in (FIRST, text("a"), text("b"), text("c")):
        writer.write(dict(frame))
    rows = sink.subscribe(RUN)
    said = "".join([told([await anext(rows)])[0] for _ in range(3)])
    same(said, "step-startabc", "what is readable without a flush")
    await _close(rows)
    await writer.end()


@_case("07 without a window each delta is a row")
async def _rows(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make(flush_ms=0)
    writer = sink.open(RUN, 1)
    await written(writer, *map(text, "abcd"))
    await writer.end()
    same(told(await followed(sink)), ["a", "b", "c", "d", None], "rows")


@_case("08 two processes that write at once give each frame a number of its own, without a gap", processes=2)
async def _at_once(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    other, sink = _other(subject), subject.make()
    theirs = [title(f"theirs {number}") for number in range(20)]
    writing = asyncio.create_task(asyncio.to_thread(other.ask, "write", run=RUN, attempt=1, frames=theirs))
    writer = sink.open(RUN, 1)
    for number in range(20):
        await written(writer, title(f"ours {number}"))
    await writing
    await writer.end()
    rows = await followed(sink)
    same(numbers(rows), list(range(1, 42)), "numbers")
    same(len({row.frame for row in rows}), 41, "each frame once")


@_case("09 what a delegate flushes comes before its parent's next frame")
async def _delegate(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make(flush_ms=LONG_MS)
    parent, delegate = sink.open(RUN, 1), sink.open(RUN, 1)
    await written(parent, FIRST, text("a"))
    delegate.write(text("b"))
    await delegate.flush()
    await written(parent, title("c"))
    await parent.end()
    same(told(await followed(sink)), ["step-start", "a", "b", "c", None], "frames")


@_case("10 two writers of one process gather the same text")
async def _shared(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make(flush_ms=LONG_MS)
    one, two = sink.open(RUN, 1), sink.open(RUN, 1)
    await written(one, FIRST, text("a"))
    one.write(text("b"))
    two.write(text("c"))
    await one.flush()
    await one.end()
    same(told(await followed(sink)), ["step-start", "a", "bc", None], "frames")


@_case("11 a stream is there for other processes too, until it is closed", processes=2)
async def _there(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    other, sink = _other(subject), subject.make()
    same([await in_db(sink.has, RUN), other.ask("has", run=RUN)], [False, False], "before")
    await written(sink.open(RUN, 1), title("a"))
    same([await in_db(sink.has, RUN), other.ask("has", run=RUN)], [True, True], "written")
    await in_db(sink.close, RUN)
    same([await in_db(sink.has, RUN), other.ask("has", run=RUN)], [False, False], "closed")


async def _stale(subject: SinkSubject, sink: FrameSink) -> None:
    """Two old streams, ended and crashed, and one whose last write is not old."""
    for run_id in ("ended", "crashed", "live"):
        await in_db(new_run, subject.store, run_id)
        await written(sink.open(run_id, 1), title("a"))
    await sink.open("ended", 1).end()
    await in_db(subject.store.record_run_end, "ended", completed())
    subject.clock.advance(TTL - 1)
    await written(sink.open("live", 1), title("b"))
    subject.clock.advance(2)


@_case("12 a purge takes whole streams whose last write is too old, ended or not, and says how many")
async def _purge(subject: SinkSubject) -> None:
    sink = subject.make(ttl_seconds=TTL, auto_purge=False)
    await _stale(subject, sink)
    same(await in_db(sink.purge_expired), 2, "streams removed")
    same([await in_db(sink.has, each) for each in ("ended", "crashed", "live")], [False, False, True], "what is left")
    same(await in_db(sink.purge_expired), 0, "a second time")


@_case("13 without a TTL nothing is purged")
async def _kept(subject: SinkSubject) -> None:
    sink = subject.make(ttl_seconds=0)
    await _stale(subject, sink)
    same([await in_db(sink.purge_expired), await in_db(sink.has, "crashed")], [0, True], "what is left")


@_case("14 the end of a run purges old streams and keeps its own")
async def _auto_purge(subject: SinkSubject) -> None:
    await _stale(subject, subject.make(ttl_seconds=TTL, auto_purge=False))
    sink = subject.make(ttl_seconds=TTL)
    await in_db(new_run, subject.store)
    await sink.open(RUN, 1).end()
    same([await in_db(sink.has, each) for each in ("ended", RUN)], [False, True], "what is left")


@_case("15 who comes back gets what is above the cursor and nothing else")
async def _above(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make()
    writer = sink.open(RUN, 1)
    await written(writer, *map(title, range(600)))
    await writer.end()
    for after in (0, 1, 499, 500, 600, 601):
        rows = await followed(sink, after) if after < 601 else []
        same(numbers(rows), list(range(after + 1, 602)), f"above {after}")


@_case("16 the first text of a step is readable before the window has passed")
async def _first_text(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make(flush_ms=LONG_MS)
    writer = sink.open(RUN, 1)
    rows = sink.subscribe(RUN)
    for kind in ("step-start", "step-restart"):
        writer.write({"kind": kind})
        writer.write(text("first"))
        same(told([await anext(rows), await anext(rows)]), [kind, "first"], "readable at once")
    await _close(rows)
    await writer.end()


@_case("17 a pushed wake-up reaches another process before it would poll", processes=2)
async def _wake(subject: SinkSubject) -> None:
    if not subject.pushes:
        return
    await in_db(new_run, subject.store)
    slow = {"poll_ms": LONG_MS // 2, "idle_poll_ms": LONG_MS // 2}
    other, sink = _other(subject, **slow), subject.make(**slow)
    other.ask("follow", run=RUN, after=0)
    writer = sink.open(RUN, 1)
    await written(writer, title("a"))
    await asyncio.sleep(0.2)  # it has read what was there, and waits
    at = time.monotonic()
    await writer.end()
    seen: float = (await asyncio.to_thread(other.answer))["at"][-1]
    expect(seen - at < 5, f"seen after {seen - at:.1f} seconds, and polled for every {LONG_MS // 2000}")


@_case("18 a run that was parked for longer than the TTL goes on with higher numbers")
async def _parked(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make(ttl_seconds=TTL, auto_purge=False)
    writer = sink.open(RUN, 1)
    await written(writer, title("a"), title("b"))
    writer.abandon()
    subject.clock.advance(TTL + 1)
    same([await in_db(sink.purge_expired), await in_db(sink.has, RUN)], [1, False], "purged")
    writer = sink.open(RUN, 2)
    await written(writer, title("c"))
    await writer.end()
    rows = await followed(sink)
    same([numbers(rows), told(rows)], [[3, 4], ["c", None]], "what is there then")
    same(numbers(await followed(sink, 2)), [3, 4], "for who had seen the first two")


@_case("19 a second end adds nothing, and a write behind the end is refused")
async def _ended(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make()
    writer = sink.open(RUN, 1)
    await written(writer, title("a"))
    for end in (writer.end, writer.end):
        await end()
    try:
        writer.write(title("b"))
    except RuntimeError:
        same(told(await followed(sink)), ["a", None], "rows")
        return
    raise ContractMismatch("a frame was taken behind the end")


@_case("20 nobody waits for the end of a run that is over without a terminal frame")
async def _over(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make()
    await written(sink.open(RUN, 1), title("a"))
    await in_db(subject.store.record_run_end, RUN, completed())
    subject.clock.advance(60)
    same(told(await followed(sink)), ["a", None], "from the start")
    same(told(await followed(sink, 1)), [None], "from the last frame")
    same(told(await followed(sink, 9)), [None], "from above it")


@_case("21 once a newer attempt has opened the run, an older one is refused")
async def _fence(subject: SinkSubject) -> None:
    await in_db(running, subject.store)
    sink = subject.make()
    old = sink.open(RUN, 1)
    await written(old, title("a"))
    subject.clock.advance(3600)
    await in_db(claimed, subject.store, owner="w2")
    new = sink.open(RUN, 2)
    await written(new, title("b"))
    try:
        await written(old, title("late"))
    except LeaseLost:
        await new.end()
        same(told(await followed(sink)), ["a", "b", None], "rows")
        return
    raise ContractMismatch("a frame of an older attempt was written")


async def _close(rows: AsyncIterator[NumberedFrame]) -> None:
    close = getattr(rows, "aclose", None)
    if close is not None:
        await close()
