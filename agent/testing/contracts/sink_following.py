"""What a sink promises to who follows: everything once, from any place, and an end."""

from __future__ import annotations

import asyncio
import time

from agent.db import in_db
from agent.testing.contracts.base import expect, same
from agent.testing.contracts.rows import completed, new_run
from agent.testing.contracts.sink_subject import (
    FIRST,
    LONG_MS,
    RUN,
    SinkCase,
    SinkSubject,
    followed,
    numbers,
    other_process,
    sink_case,
    title,
    told,
    written,
)

SINK_FOLLOWING: list[SinkCase] = []


@sink_case("02 what one process writes is read in another that was there before", SINK_FOLLOWING, processes=2)
async def _across(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    other, sink = other_process(subject), subject.make()
    other.ask("follow", run=RUN, after=0)
    writer = sink.open(RUN, 1)
    await written(writer, FIRST, title("a"))
    await writer.end()
    rows = (await asyncio.to_thread(other.answer))["rows"]
    same([row[0] for row in rows], [1, 2, 3], "numbers")
    same([row[1] is None for row in rows], [False, False, True], "the end")


@sink_case("03 who comes late gets what was written, then what is", SINK_FOLLOWING)
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


@sink_case("15 who comes back gets what is above the cursor and nothing else", SINK_FOLLOWING)
async def _above(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make()
    writer = sink.open(RUN, 1)
    await written(writer, *map(title, range(600)))
    await writer.end()
    for after in (0, 1, 499, 500, 600, 601):
        rows = await followed(sink, after) if after < 601 else []
        same(numbers(rows), list(range(after + 1, 602)), f"above {after}")


@sink_case("17 a pushed wake-up reaches another process before it would poll", SINK_FOLLOWING, processes=2)
async def _wake(subject: SinkSubject) -> None:
    if not subject.pushes:
        return
    await in_db(new_run, subject.store)
    slow = {"poll_ms": LONG_MS // 2, "idle_poll_ms": LONG_MS // 2}
    other, sink = other_process(subject, **slow), subject.make(**slow)
    other.ask("follow", run=RUN, after=0, tell_at=1)
    writer = sink.open(RUN, 1)
    await written(writer, title("a"))
    await asyncio.to_thread(other.answer)  # it has read what was there, and waits
    at = time.monotonic()
    await writer.end()
    seen: float = (await asyncio.to_thread(other.answer))["at"][-1]
    expect(seen - at < 5, f"seen after {seen - at:.1f} seconds, and polled for every {LONG_MS // 2000}")


@sink_case("20 nobody waits for the end of a run that is over without a terminal frame", SINK_FOLLOWING)
async def _over(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make()
    await written(sink.open(RUN, 1), title("a"))
    await in_db(subject.store.record_run_end, RUN, completed())
    subject.clock.advance(60)
    same(told(await followed(sink)), ["a", None], "from the start")
    same(told(await followed(sink, 1)), [None], "from the last frame")
    same(told(await followed(sink, 9)), [None], "from above it")
