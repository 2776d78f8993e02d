"""Followers of one process: bounded, never kept waiting for an end that is past, and gone without a trace."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import cast

import pytest

from agent.domain.commands import RunEnd
from agent.domain.snapshots import NumberedFrame
from agent.errors import LeaseLost
from agent.sinks.base import FellBehind
from agent.sinks.memory import MemorySink
from agent.sinks.subscription import MOST_UNREAD
from agent.testing import InMemoryStore
from agent.testing.contracts import SettableClock
from agent.testing.contracts.rows import completed, new_run

pytestmark = [pytest.mark.once, pytest.mark.asyncio]

DEADLINE = 20


class Counting(MemorySink):
    """Notes what is read."""

    def __init__(self, store: InMemoryStore, **options: object) -> None:
        super().__init__(store, **options)
        self.reads: list[tuple[Mapping[str, int], int]] = []

    async def _read(self, positions: Mapping[str, int], limit: int) -> Mapping[str, Sequence[NumberedFrame]]:
        rows = await super()._read(positions, limit)
        self.reads.append((positions, sum(map(len, rows.values()))))
        return rows


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.clock = SettableClock()
    new_run(store)
    return store


@pytest.fixture
def sink(store: InMemoryStore) -> Iterator[Counting]:
    made = Counting(store)
    yield made
    made.stop()


async def rest(frames: AsyncIterator[NumberedFrame]) -> list[NumberedFrame]:
    async with asyncio.timeout(DEADLINE):
        return [frame async for frame in frames]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110 - it comes true on another thread
            await asyncio.sleep(0.005)


async def follow(sink: MemorySink, after: int = 0) -> list[NumberedFrame]:
    return await rest(sink.subscribe("run-1", after))


def settle(store: InMemoryStore, end: RunEnd | None = None) -> None:
    """The run is over, and has been for a while."""
    store.record_run_end("run-1", end or completed())
    store.clock.advance(60)  # type: ignore[attr-defined]


async def note(frames: AsyncIterator[NumberedFrame], seen: list[int]) -> None:
    async for frame in frames:
        seen.append(frame.seq)  # noqa: PERF401 - what was seen before it was let go counts


async def write(sink: MemorySink, count: int, *, attempt: int = 1) -> None:
    writer = sink.open("run-1", attempt)
    for number in range(count):
        writer.write({"kind": "title", "title": str(number)})
    await writer.flush()


@pytest.mark.parametrize("after", [0, 2, 3, 99])
async def test_a_run_that_is_over_without_a_terminal_row_ends_its_follower_at_once(
    store: InMemoryStore, sink: Counting, after: int
) -> None:
    await write(sink, 3)
    settle(store)
    rows = await follow(sink, after)
    assert [row.seq for row in rows[:-1]] == list(range(after + 1, 4))
    assert (rows[-1].terminal, rows[-1].error) == (True, None)


async def test_a_failed_run_without_a_terminal_row_ends_with_its_code(store: InMemoryStore, sink: Counting) -> None:
    settle(store, RunEnd(status="failed", error_code="model_error", error_message="boom"))
    [row] = await follow(sink)
    assert row.error == {"code": "model_error", "message": ""}


async def test_the_last_frames_of_a_run_that_was_just_settled_are_waited_for(
    store: InMemoryStore, sink: Counting
) -> None:
    store.record_run_end("run-1", completed())
    following = asyncio.create_task(follow(sink))
    await until(lambda: len(sink.reads) > 1)
    sink.finish("run-1", ["{}\n"])
    assert [row.frame for row in await following] == ["{}\n", None]


async def test_a_run_that_nobody_knows_ends_its_follower(sink: Counting) -> None:
    [row] = await rest(sink.subscribe("nobody"))
    assert row.error is not None
    assert row.error["code"] == "stream_not_found"


async def test_what_was_missed_is_read_and_nothing_else(sink: Counting) -> None:
    await write(sink, 2000)
    await sink.open("run-1", 1).end()
    rows = await follow(sink, 1800)
    assert [row.seq for row in rows] == list(range(1801, 2002))
    assert sink.reads == [({"run-1": 1800}, 201)]


async def test_a_long_replay_is_read_no_faster_than_it_is_taken(sink: Counting) -> None:
    await write(sink, 3000)
    await sink.open("run-1", 1).end()
    async with aclosing(cast("AsyncGenerator[NumberedFrame, None]", sink.subscribe("run-1"))) as frames:
        first = await anext(frames)
        await asyncio.sleep(0)
        assert (first.seq, sum(count for _, count in sink.reads)) == (1, 500)
        assert len(await rest(frames)) == 3000


async def test_who_leaves_too_much_unread_is_let_go_behind_it_and_comes_back(sink: Counting) -> None:
    await write(sink, 1)
    async with aclosing(cast("AsyncGenerator[NumberedFrame, None]", sink.subscribe("run-1"))) as frames:
        await anext(frames)
        await until(lambda: sink._pump._followers._runs["run-1"].waiting())
        await write(sink, MOST_UNREAD + 500)
        seen: list[int] = []
        with pytest.raises(FellBehind):
            await note(frames, seen)
    assert seen == list(range(2, MOST_UNREAD + 2))
    await sink.open("run-1", 1).end()
    assert [row.seq for row in await follow(sink, seen[-1])] == list(range(seen[-1] + 1, MOST_UNREAD + 503))


async def test_what_the_process_writes_itself_is_pushed_without_a_read(sink: Counting) -> None:
    frames = sink.subscribe("run-1")
    first = asyncio.ensure_future(anext(frames))
    await until(lambda: sink.reads)
    for number in range(20):
        await write(sink, 1)
        assert (await first).seq == number + 1
        first = asyncio.ensure_future(anext(frames))
    first.cancel()
    assert sum(count for _, count in sink.reads) == 0


async def test_a_writer_of_an_older_attempt_is_refused(sink: Counting) -> None:
    old = sink.open("run-1", 1)
    old.write({"kind": "step-start"})
    await old.flush()
    sink.open("run-1", 2)
    old.write({"kind": "title", "title": "late"})
    with pytest.raises(LeaseLost):
        await old.flush()
    assert len(sink.stored("run-1")) == 1


async def test_memory_is_given_back_after_the_last_write_is_old_enough(store: InMemoryStore) -> None:
    sink = MemorySink(store, ttl_seconds=10)
    await write(sink, 3)
    store.clock.advance(9)  # type: ignore[attr-defined]
    assert (sink.purge_expired(), sink.has("run-1")) == (0, True)
    store.clock.advance(2)  # type: ignore[attr-defined]
    assert (sink.purge_expired(), sink.has("run-1")) == (1, False)


async def test_the_end_of_the_sink_lets_followers_go(sink: Counting) -> None:
    following = asyncio.create_task(follow(sink))
    await until(lambda: sink.reads)
    await asyncio.to_thread(sink.stop)
    with pytest.raises(FellBehind):
        await following
    assert not [each for each in threading.enumerate() if each.name == "agent-stream"]


async def test_a_thousand_followers_that_come_and_go_leave_no_thread_and_no_task(sink: Counting) -> None:
    await write(sink, 1)
    before = (threading.active_count(), len(asyncio.all_tasks()))
    for _ in range(1000):
        async with aclosing(cast("AsyncGenerator[NumberedFrame, None]", sink.subscribe("run-1"))) as frames:
            await anext(frames)
    assert len(sink._pump._followers) == 0
    assert threading.active_count() <= before[0] + 1  # the pump's, which lingers
    assert len(asyncio.all_tasks()) == before[1]
