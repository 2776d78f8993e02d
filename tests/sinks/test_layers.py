"""The channel layer is a hint: full, it costs a follower no frame (B49); used a lot, it costs no connections (B50)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any, cast

import pytest
import redis
from django.test import override_settings

from agent.db import close_threads, in_db
from agent.domain.snapshots import NumberedFrame
from agent.sinks import broadcast
from agent.sinks.base import FellBehind
from agent.sinks.database import DatabaseSink
from agent.sinks.pumped import PumpedSink
from agent.store.orm import OrmStore
from agent.testing.contracts.rows import new_run
from tests.edges.streams import eventually

DEADLINE = 120
FRAMES = 5000
AT_ONCE = 25
PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"
QUEUED = "channels_redis.core.RedisChannelLayer"
MEMORY = "channels.layers.InMemoryChannelLayer"


@pytest.fixture
def sinks(transactional_db: None) -> Iterator[list[PumpedSink]]:
    made: list[PumpedSink] = []
    yield made
    for sink in made:
        sink.stop()
    broadcast.stop_broadcast()
    close_threads()


def layer(backend: str, url: str, **config: Any) -> dict[str, Any]:
    hosts = {} if backend == MEMORY else {"hosts": [url]}
    return {"default": {"BACKEND": backend, "CONFIG": {**hosts, **config}}}


async def written(sink: PumpedSink) -> None:
    writer = sink.open("run-1", 1)
    for number in range(FRAMES):
        writer.write({"kind": "title", "title": str(number)})
        if number % AT_ONCE == 0:
            await writer.flush()
    await writer.end()


async def taken(sink: PumpedSink, may_read: asyncio.Event) -> list[int]:
    """The numbers that a client has, which reads one frame and then nothing for long; who was let go comes back."""
    seen: list[int] = []
    while not seen or seen[-1] <= FRAMES:
        following = cast("AsyncGenerator[NumberedFrame, None]", sink.subscribe("run-1", seen[-1] if seen else 0))
        async with aclosing(following) as frames:
            try:
                async for row in frames:
                    seen.append(row.seq)
                    await may_read.wait()
            except FellBehind:
                continue
    return seen


@pytest.mark.only_on("sqlite", "mysql")  # PostgreSQL wakes its followers itself
@pytest.mark.parametrize("backend", [PUBSUB, QUEUED, MEMORY])
def test_a_layer_that_drops_costs_a_client_that_reads_nothing_no_frame(
    sinks: list[PumpedSink], redis_url: str, backend: str
) -> None:
    async def play() -> list[int]:
        here, there = sinks
        await in_db(new_run, OrmStore())
        may_read = asyncio.Event()
        async with asyncio.timeout(DEADLINE):
            client = asyncio.create_task(taken(here, may_read))
            await written(there)
            may_read.set()
            return await client

    with override_settings(CHANNEL_LAYERS=layer(backend, redis_url, capacity=1)):
        sinks += [DatabaseSink(OrmStore()) for _ in range(2)]
        assert asyncio.run(play()) == list(range(1, FRAMES + 2))


@pytest.mark.once
@pytest.mark.parametrize("backend", [PUBSUB, QUEUED])
def test_ten_thousand_sends_use_the_connections_of_the_first(redis_url: str, backend: str) -> None:
    with redis.Redis.from_url(redis_url) as watcher, override_settings(CHANNEL_LAYERS=layer(backend, redis_url)):
        alone = len(watcher.client_list())
        seen = set()
        try:
            for _ in range(20):
                for number in range(500):
                    broadcast.post("agent.run.1", {"type": "agent.wake", "runId": "1", "seq": number})
                waiting = broadcast._sender()._messages
                assert eventually(waiting.empty, seconds=DEADLINE)
                seen.add(len(watcher.client_list()) - alone)
        finally:
            broadcast.stop_broadcast()
        assert seen <= {1, 2}  # one that sends, and one that would hear
        assert broadcast._current is None
        assert eventually(lambda: len(watcher.client_list()) <= alone + 2)
