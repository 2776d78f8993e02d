"""The SSE wire (spec 05 §2): a run's frames, with ids, as bytes for one client."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from agent.api.rendering import to_json
from agent.db import close_connections
from agent.domain.snapshots import NumberedFrame
from agent.errors import AgentError
from agent.flows.following import PACE, Follower, Pace
from agent.sinks.base import FellBehind

logger = logging.getLogger("agent.api")

PING: Final = b": ping\n\n"
EXPOSED: Final = ("X-Accel-Buffering", "X-Agent-Run-Id", "X-Agent-Thread-Id")


def event_stream(
    request: HttpRequest, frames: AsyncIterator[NumberedFrame], *, run_id: str, thread_id: str, reconnect: bool
) -> StreamingHttpResponse:
    """The answer that follows a run."""
    meta = {"runId": run_id} if reconnect else {"runId": run_id, "threadId": thread_id}
    response = stream_response(request, events(meta, frames, pace=PACE))
    response["X-Agent-Run-Id"] = run_id
    response["X-Agent-Thread-Id"] = thread_id
    response["Access-Control-Expose-Headers"] = ", ".join(EXPOSED)
    return response


def stream_response(request: HttpRequest, parts: AsyncGenerator[bytes, None]) -> StreamingHttpResponse:
    """Parts of an event stream as they come, held back by nobody on the way; a sync server is given a sync iterator."""
    streams = isinstance(request, ASGIRequest)
    response = StreamingHttpResponse(
        _without_connection(parts) if streams else in_sync(parts), content_type="text/event-stream; charset=utf-8"
    )
    response["Cache-Control"] = "no-store, no-transform"
    response["Content-Encoding"] = "identity"  # else GZipMiddleware holds frames back
    response["X-Accel-Buffering"] = "no"
    return response


async def events(
    meta: dict[str, Any], frames: AsyncIterator[NumberedFrame], *, pace: Pace
) -> AsyncGenerator[bytes, None]:
    """`meta`, the frames with pings in their silences, then `done` or `error`.

    Without either, the client comes back with the last id it has: when it fell behind or too much was written, and when
    following broke for a reason that is not the run's.
    """
    yield event("meta", meta)
    try:
        async with Follower(frames, pace) as follower:
            async for batch in follower:
                part = b"".join(map(frame_event, batch)) or PING
                follower.wrote(len(part))
                yield part
    except FellBehind:
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
        await sync_to_async(close_connections, thread_sensitive=True)()
        async for part in parts:
            yield part
