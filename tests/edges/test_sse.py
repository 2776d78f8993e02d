"""The SSE wire as bytes: order of events, ids, pings, the end, and who is let go when."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable

import pytest

from agent.api.sse import PING, events, in_sync
from agent.domain.snapshots import NumberedFrame
from agent.errors import NotFound, StreamFailed
from agent.flows.following import Pace
from agent.sinks.base import FellBehind

pytestmark = [pytest.mark.once, pytest.mark.asyncio]

META = {"runId": "r", "threadId": "t"}
QUIET = Pace(ping_seconds=60)


def frame(seq: int, text: str = "x") -> NumberedFrame:
    return NumberedFrame(seq=seq, frame=json.dumps({"kind": "text", "text": text}) + "\n")


async def run_of(frames: Iterable[NumberedFrame], error: Exception | None = None) -> AsyncIterator[NumberedFrame]:
    for one in frames:
        yield one
    if error is not None:
        raise error


async def written(frames: AsyncIterator[NumberedFrame], pace: Pace = QUIET) -> bytes:
    return b"".join([part async for part in events(META, frames, pace=pace)])


async def test_meta_comes_first_then_numbered_frames_then_done() -> None:
    assert await written(run_of([frame(3), frame(4)])) == (
        b'event: meta\ndata: {"runId":"r","threadId":"t"}\n\n'
        b'id: 3\ndata: {"kind": "text", "text": "x"}\n\n'
        b'id: 4\ndata: {"kind": "text", "text": "x"}\n\n'
        b"event: done\ndata: {}\n\n"
    )


async def test_meta_does_not_wait_for_a_frame() -> None:
    never: asyncio.Event = asyncio.Event()

    async def silent() -> AsyncIterator[NumberedFrame]:
        await never.wait()
        yield frame(1)

    parts = events(META, silent(), pace=QUIET)
    assert (await anext(parts)).startswith(b"event: meta")
    await parts.aclose()


async def test_a_failed_run_ends_with_its_error_and_without_done() -> None:
    text = await written(run_of([frame(1)], StreamFailed("Sorry.", code="run_failed")))
    assert text.endswith(b'event: error\ndata: {"code":"run_failed","message":"Sorry."}\n\n')
    assert b"done" not in text


async def test_frames_that_are_purged_meanwhile_end_the_stream_with_their_code() -> None:
    text = await written(run_of([frame(1)], NotFound(code="stream_not_found")))
    assert b'"code":"stream_not_found"' in text


async def test_a_broken_follower_ends_without_a_word_so_that_the_client_comes_back() -> None:
    text = await written(run_of([frame(1)], RuntimeError("database gone")))
    assert text.endswith(b'"x"}\n\n')
    assert b"database gone" not in text


async def test_a_client_that_fell_behind_is_let_go_without_a_word() -> None:
    text = await written(run_of([frame(1)], FellBehind()))
    assert text.endswith(b'"x"}\n\n')
    assert b"done" not in text


async def test_silence_is_filled_with_pings_that_carry_no_id() -> None:
    heard = asyncio.Event()

    async def slow() -> AsyncIterator[NumberedFrame]:
        yield frame(1)
        await heard.wait()
        yield frame(2)

    parts: list[bytes] = []
    async for part in events(META, slow(), pace=Pace(ping_seconds=0.001)):
        parts.append(part)
        if parts.count(PING) == 3:
            heard.set()
    assert b"".join(part for part in parts if part != PING).count(b"id: ") == 2
    assert parts[-1].startswith(b"event: done")


async def test_a_waiting_frame_is_not_lost_by_a_ping() -> None:
    gate: asyncio.Queue[int] = asyncio.Queue()

    async def paced() -> AsyncIterator[NumberedFrame]:
        for seq in range(1, 6):
            await gate.get()
            yield frame(seq)

    parts = events(META, paced(), pace=Pace(ping_seconds=0.001))
    ids: list[bytes] = []
    async for part in parts:
        if part == PING:
            gate.put_nowait(1)
        ids += [line for line in part.splitlines() if line.startswith(b"id: ")]
    assert ids == [f"id: {seq}".encode() for seq in range(1, 6)]


async def test_too_much_written_ends_without_done_after_a_whole_frame() -> None:
    big = [frame(seq, "y" * 1000) for seq in range(1, 10_000)]
    text = await written(run_of(big), Pace(ping_seconds=60, byte_limit=100_000))
    assert 100_000 <= len(text) < 200_000
    assert text.endswith(b'"}\n\n')
    assert b"done" not in text


async def test_a_frame_of_several_lines_stays_one_event() -> None:
    text = await written(run_of([NumberedFrame(seq=1, frame='{"kind":\n"text"}\n')]))
    assert b'id: 1\ndata: {"kind":\ndata: "text"}\n\n' in text


async def test_closing_ends_the_follower_and_runs_its_finally() -> None:
    closed: list[str] = []

    async def follower() -> AsyncGenerator[NumberedFrame, None]:
        try:
            yield frame(1)
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    async with contextlib.aclosing(events(META, follower(), pace=QUIET)) as parts:
        await anext(parts)
        await anext(parts)
    assert closed == ["closed"]


async def test_a_cancelled_response_ends_the_follower() -> None:
    closed: list[str] = []
    waiting = asyncio.Event()

    async def follower() -> AsyncGenerator[NumberedFrame, None]:
        try:
            waiting.set()
            await asyncio.Event().wait()
            yield frame(1)
        finally:
            closed.append("closed")

    response = asyncio.create_task(written(follower()))
    await waiting.wait()
    response.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await response
    assert closed == ["closed"]


async def test_a_slow_client_leaves_few_frames_read_ahead() -> None:
    read: list[int] = []

    async def endless() -> AsyncIterator[NumberedFrame]:
        for seq in range(1, 100_000):
            read.append(seq)
            yield frame(seq)

    async with contextlib.aclosing(events(META, endless(), pace=QUIET)) as parts:
        await anext(parts)
        await anext(parts)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(read) < 300


async def test_a_sync_server_gets_the_same_bytes() -> None:
    def sync() -> bytes:
        return b"".join(in_sync(events(META, run_of([frame(1), frame(2)]), pace=QUIET)))

    assert await asyncio.to_thread(sync) == await written(run_of([frame(1), frame(2)]))


async def test_a_sync_server_that_stops_closes_the_follower() -> None:
    closed: list[str] = []

    async def follower() -> AsyncGenerator[NumberedFrame, None]:
        try:
            yield frame(1)
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    def sync() -> None:
        parts = in_sync(events(META, follower(), pace=QUIET))
        next(parts)
        next(parts)
        parts.close()  # type: ignore[attr-defined]

    await asyncio.to_thread(sync)
    assert closed == ["closed"]
