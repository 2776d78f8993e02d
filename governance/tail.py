"""What happens now, for one watcher: the events of this process, or of all where a channel layer joins them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from channels.layers import BaseChannelLayer

from agent.api.sse import PING, event
from agent.models.tenants import Tenants
from agent.signals import Event, happened
from agent.sinks.broadcast import GROUP, shared_layer

SILENCE = 15  # seconds until a stream without news says that it is there
AHEAD = 200  # events that a slow watcher may be behind; then it misses the oldest

News = Mapping[str, Any]  # {event, ts, payload}, as on every other wire


async def tail(tenants: Tenants, *, silence: float) -> AsyncGenerator[News | None, None]:
    """Events of these tenants as they happen; None after each `silence` seconds without one."""
    layer = shared_layer()
    source = _of_this_process() if layer is None else _of_all(layer)
    async with source as waiting:
        while True:
            try:
                async with asyncio.timeout(silence):
                    news = await waiting.get()
            except TimeoutError:
                yield None
                continue
            if news is None:  # the layer is gone: whoever watches comes back
                return
            if tenants is None or news["payload"].get("tenantRef") in tenants:
                yield news


async def event_parts(tenants: Tenants) -> AsyncGenerator[bytes, None]:
    """The same as server-sent events: `open`, then `news` as they come, with pings in their silences."""
    yield event("open", {})
    async for news in tail(tenants, silence=SILENCE):
        yield PING if news is None else event("news", dict(news))


async def knocks(tenants: Tenants, prefix: str) -> AsyncGenerator[bytes, None]:
    """That something of this kind happened, and nothing about it: for who looks again then."""
    yield event("open", {})
    async for news in tail(tenants, silence=SILENCE):
        if news is None:
            yield PING
        elif news["event"].startswith(prefix):
            yield event("news", {})


@contextlib.asynccontextmanager
async def _of_this_process() -> AsyncGenerator[asyncio.Queue[News | None], None]:
    """Events arise on any thread and are handed to this loop."""
    waiting: asyncio.Queue[News | None] = asyncio.Queue(AHEAD)
    loop = asyncio.get_running_loop()

    def receive(event: Event, **kwargs: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and its watcher with it
            loop.call_soon_threadsafe(_put, waiting, event.to_wire())

    happened.connect(receive, weak=False)
    try:
        yield waiting
    finally:
        happened.disconnect(receive)


@contextlib.asynccontextmanager
async def _of_all(layer: BaseChannelLayer) -> AsyncGenerator[asyncio.Queue[News | None], None]:
    """The events of this process come back over the layer too, so that it alone is listened to."""
    waiting: asyncio.Queue[News | None] = asyncio.Queue(AHEAD)
    channel = await layer.new_channel()
    await layer.group_add(GROUP, channel)
    reading = asyncio.create_task(_read(layer, channel, waiting))
    try:
        yield waiting
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await layer.group_discard(GROUP, channel)


async def _read(layer: BaseChannelLayer, channel: str, waiting: asyncio.Queue[News | None]) -> None:
    try:
        while True:
            sent = await layer.receive(channel)
            _put(waiting, {name: sent[name] for name in ("event", "ts", "payload")})
    finally:
        _put(waiting, None)


def _put(waiting: asyncio.Queue[News | None], news: News | None) -> None:
    if waiting.full():
        waiting.get_nowait()
    waiting.put_nowait(news)
