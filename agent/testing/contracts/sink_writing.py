"""What a sink promises to who writes: order, gathering, numbers, the fence."""

from __future__ import annotations

import asyncio
import json

from agent.db import in_db
from agent.errors import LeaseLost
from agent.sinks.writer import Aside
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import claimed, new_run, running
from agent.testing.contracts.sink_subject import (
    FIRST,
    LONG_MS,
    RUN,
    SinkCase,
    SinkSubject,
    followed,
    let_go,
    numbers,
    other_process,
    sink_case,
    text,
    title,
    told,
    written,
)

SINK_WRITING: list[SinkCase] = []


@sink_case("01 frames come in the order they were written, then the end", SINK_WRITING)
async def _order(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make()
    writer = sink.open(RUN, 1)
    await written(writer, FIRST, text("a"), title("b"))
    await writer.end()
    rows = await followed(sink)
    same(told(rows), ["step-start", "a", "b", None], "frames")
    same(numbers(rows), [1, 2, 3, 4], "numbers")


@sink_case("04 a failed run is replayed, then its error", SINK_WRITING)
async def _failed(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink, error = subject.make(), {"code": "model_error", "message": "Sorry."}
    writer = sink.open(RUN, 1)
    await written(writer, title("a"))
    await writer.fail(error)
    rows = await followed(sink)
    same(told(rows), ["a", None], "frames")
    same(rows[-1].error, error, "the error")


@sink_case("05 quick deltas are gathered, and never across another frame", SINK_WRITING)
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


@sink_case("06 gathered text is written by itself when the window ends", SINK_WRITING)
async def _window(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make(flush_ms=20)
    writer = sink.open(RUN, 1)
    for frame in (FIRST, text("a"), text("b"), text("c")):
        writer.write(dict(frame))
    rows = sink.subscribe(RUN)
    said = "".join([told([await anext(rows)])[0] for _ in range(3)])
    same(said, "step-startabc", "what is readable without a flush")
    await let_go(rows)
    await writer.end()


@sink_case("07 without a window each delta is a row", SINK_WRITING)
async def _rows(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make(flush_ms=0)
    writer = sink.open(RUN, 1)
    await written(writer, *map(text, "abcd"))
    await writer.end()
    same(told(await followed(sink)), ["a", "b", "c", "d", None], "rows")


@sink_case(
    "08 two processes that write at once give each frame a number of its own, without a gap", SINK_WRITING, processes=2
)
async def _at_once(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    other, sink = other_process(subject), subject.make()
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


@sink_case("09 what a delegate flushes comes before its parent's next frame", SINK_WRITING)
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


@sink_case("10 two writers of one process gather the same text", SINK_WRITING)
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


@sink_case("16 the first text of a step is readable before the window has passed", SINK_WRITING)
async def _first_text(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make(flush_ms=LONG_MS)
    writer = sink.open(RUN, 1)
    rows = sink.subscribe(RUN)
    for kind in ("step-start", "step-restart"):
        writer.write({"kind": kind})
        writer.write(text("first"))
        same(told([await anext(rows), await anext(rows)]), [kind, "first"], "readable at once")
    await let_go(rows)
    await writer.end()


@sink_case("19 a second end adds nothing, and a write behind the end is refused", SINK_WRITING)
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


@sink_case("21 once a newer attempt has opened the run, an older one is refused", SINK_WRITING)
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


@sink_case("22 a delegate speaks under its call, fenced by its own attempt, and does not end the stream", SINK_WRITING)
async def _aside(subject: SinkSubject) -> None:
    await in_db(_asked, subject.store)
    sink, aside = subject.make(), Aside("child", "call")
    parent, delegate = sink.open(RUN, 2), sink.open(RUN, 1, aside)
    await written(parent, title("a"))
    await written(delegate, title("b"))  # of a first attempt, in a stream whose run is in its second
    await delegate.end()
    subject.clock.advance(3600)
    await in_db(claimed, subject.store, "child", owner="w2")
    late, again = sink.open(RUN, 1, aside), sink.open(RUN, 2, aside)
    await written(again, title("c"))
    try:
        await written(late, title("late"))
    except LeaseLost:
        await parent.end()
        rows = [json.loads(row.frame) if row.frame else {} for row in await followed(sink)]
        same([row.get("title") for row in rows], ["a", "b", "c", None], "rows")
        same([row.get("parentId") for row in rows], [None, "call", "call", None], "under the call")
        return
    raise ContractMismatch("a frame of a delegate's older attempt was written")


def _asked(store: AgentStore) -> None:
    """A run in its second attempt, and the run that it awaits in its first."""
    lease = running(store)
    store.release_run(lease)
    claimed(store)
    running(store, "child")
