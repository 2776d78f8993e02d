"""The SSE wire (spec 05 §2): a run's frames, with ids, as bytes for one client."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest, StreamingHttpResponse

from agent.api.rendering import to_json
from agent.domain.snapshots import NumberedFrame
from agent.errors import AgentError

logger = logging.getLogger("agent.api")

PING: Final = b": ping\n\n"
AHEAD: Final = 64  # frames that are read before the client takes them
EXPOSED: Final = ("X-Accel-Buffering", "X-Agent-Run-Id", "X-Agent-Thread-Id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long a stream may be silent, and how much it may write before its client must come back."""

    ping_seconds: float = 15
    # A server without back-pressure does not say what its client has not read, so all that was written counts.
    byte_limit: int = 8 * 1024 * 1024


PACE = Pace()


def event_stream(
    request: HttpRequest, frames: AsyncIterator[NumberedFrame], *, run_id: str, thread_id: str, reconnect: bool
) -> StreamingHttpResponse:
    """The answer that follows a run; a sync server or test client is given a sync iterator."""
    meta = {"runId": run_id} if reconnect else {"runId": run_id, "threadId": thread_id}
    parts = events(meta, frames, pace=PACE)
    streams = isinstance(request, ASGIRequest)
    response = StreamingHttpResponse(
        _without_connection(parts) if streams else in_sync(parts), content_type="text/event-stream; charset=utf-8"
    )
    response["Cache-Control"] = "no-store, no-transform"
    response["Content-Encoding"] = "identity"  # else GZipMiddleware holds frames back
    response["X-Accel-Buffering"] = "no"
    response["X-Agent-Run-Id"] = run_id
    response["X-Agent-Thread-Id"] = thread_id
    response["Access-Control-Expose-Headers"] = ", ".join(EXPOSED)
    return response


async def events(
    meta: dict[str, Any], frames: AsyncIterator[NumberedFrame], *, pace: Pace
) -> AsyncGenerator[bytes, None]:
    """`meta`, the frames with pings in their silences, then `done` or `error`.

    Without either, the client comes back with the last id it has: when too much was written, and when following
    broke for a reason that is not the run's.
    """
    yield event("meta", meta)
    written = 0
    try:
        async with contextlib.aclosing(_batches(frames, pace.ping_seconds)) as batches:
            async for batch in batches:
                part = b"".join(map(frame_event, batch)) or PING
                written += len(part)
                yield part
                if written >= pace.byte_limit:
                    return
    except AgentError as error:
        yield event("error", {"code": error.code, "message": error.message})
        return
    except Exception:
        logger.exception("following %s broke", meta.get("runId"))
        return
    yield event("done", {})


def event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {to_json(data)}\n\n".encode("ascii")


def frame_event(frame: NumberedFrame) -> bytes:
    """A frame as it was stored, under its number."""
    lines = (frame.frame or "").rstrip("\n").split("\n")
    data = "".join(f"data: {line}\n" for line in lines)
    return f"id: {frame.seq}\n{data}\n".encode()


def in_sync(parts: AsyncGenerator[bytes, None]) -> Iterator[bytes]:
    """The same parts for a server that knows no async, on a loop of this response alone."""

    async def following() -> bytes | None:
        return await anext(parts, None)

    with asyncio.Runner() as runner:
        try:
            while (part := runner.run(following())) is not None:
                yield part
        finally:
            runner.run(parts.aclose())


async def _without_connection(parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The parts; once the middleware is through, the request's own thread gives its connections back.

    A stream may stay open for hours, and that thread, which would keep them, has nothing more to do.
    """
    async with contextlib.aclosing(parts):
        yield await anext(parts)
        await sync_to_async(_close_connections, thread_sensitive=True)()
        async for part in parts:
            yield part


def _close_connections() -> None:
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


async def _batches(
    frames: AsyncIterator[NumberedFrame], ping_seconds: float
) -> AsyncGenerator[list[NumberedFrame], None]:
    """All frames that are there, each time; an empty batch after a silence.

    A task of its own reads a few frames ahead: to wait for one with a deadline would cancel the reading.
    """
    queue: asyncio.Queue[NumberedFrame] = asyncio.Queue(AHEAD)
    news = asyncio.Event()
    reading = asyncio.create_task(_read(frames, queue, news))
    reading.add_done_callback(lambda _: news.set())
    try:
        while True:
            ended = reading.done()  # looked at before the queue is: what is put later is found the next time round
            if batch := [queue.get_nowait() for _ in range(queue.qsize())]:
                yield batch
            elif ended:
                await reading  # raises what ended it
                return
            elif not await _rang(news, ping_seconds):
                yield []
            else:
                news.clear()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read(frames: AsyncIterator[NumberedFrame], queue: asyncio.Queue[NumberedFrame], news: asyncio.Event) -> None:
    try:
        async for frame in frames:
            await queue.put(frame)
            news.set()
    finally:
        if isinstance(frames, AsyncGenerator):
            await frames.aclose()


async def _rang(news: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return False
    return True
