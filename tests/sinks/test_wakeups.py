"""Wake-ups between processes, and what followers and writers do while they or the server are away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import cast
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.test import override_settings

from agent.db import DB_THREADS, close_threads, in_db
from agent.domain.snapshots import NumberedFrame
from agent.sinks.broadcast import stop_broadcast
from agent.sinks.database import DatabaseSink
from agent.sinks.pumped import PumpedSink
from agent.sinks.redis import RedisSink
from agent.store.orm import OrmStore
from agent.testing import InMemoryStore
from agent.testing.contracts.rows import new_run
from agent.testing.sink_process import OtherProcess
from tests.edges.streams import eventually
from tests.services import start_valkey

DEADLINE = 30
RARELY = {"poll_ms": 60_000, "idle_poll_ms": 60_000}


@pytest.fixture
def sinks() -> Iterator[list[PumpedSink]]:
    made: list[PumpedSink] = []
    yield made
    for sink in made:
        sink.stop()
    stop_broadcast()
    close_threads()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110 - it comes true on another thread
            await asyncio.sleep(0.005)


async def followed(sink: PumpedSink, seen: list[NumberedFrame]) -> None:
    async with asyncio.timeout(DEADLINE):
        async for row in sink.subscribe("run-1"):
            seen.append(row)  # noqa: PERF401 - it is looked at meanwhile


async def heard_from_elsewhere(here: PumpedSink, there: PumpedSink) -> None:
    """Two sinks of one process know as little of each other as those of two; what is said by one ends the other's."""
    await in_db(new_run, OrmStore())
    seen: list[NumberedFrame] = []
    following = asyncio.create_task(followed(here, seen))
    await until(lambda: here._pump._followers.pushed)
    writer = there.open("run-1", 1)
    for number in range(3):
        writer.write({"kind": "title", "title": str(number)})
        await writer.flush()
        await until(lambda wanted=number + 1: len(seen) >= wanted)  # type: ignore[misc]
    await writer.end()
    await following
    assert [row.seq for row in seen] == [1, 2, 3, 4]


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_on("sqlite", "mysql")
def test_the_channel_layer_wakes_followers_where_the_database_does_not(sinks: list[PumpedSink], redis_url: str) -> None:
    layer = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [redis_url]}}
    with override_settings(CHANNEL_LAYERS={"default": layer}):
        sinks += [DatabaseSink(OrmStore(), **RARELY) for _ in range(2)]
        asyncio.run(heard_from_elsewhere(*sinks))


def cut_listener() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'LISTEN agent_stream%%'"
        )
        assert len(cursor.fetchall()) == 1


async def heard_after_a_cut(here: PumpedSink, other: OtherProcess) -> None:
    await in_db(new_run, OrmStore())
    seen: list[NumberedFrame] = []
    following = asyncio.create_task(followed(here, seen))
    await until(lambda: here._pump._followers.pushed)
    await in_db(cut_listener)
    await until(lambda: not here._pump._followers.pushed)
    await until(lambda: here._pump._followers.pushed)
    said = [{"kind": "title", "title": "back"}]
    await asyncio.to_thread(other.ask, "write", run="run-1", attempt=1, frames=said)
    await until(lambda: seen)
    await here.open("run-1", 1).end()
    await following
    assert [row.seq for row in seen] == [1, 2]


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_on("postgresql")
def test_a_listener_that_was_cut_comes_back(sinks: list[PumpedSink]) -> None:
    sinks.append(DatabaseSink(OrmStore(), **RARELY))
    names = {"default": connection.settings_dict["NAME"]}
    with OtherProcess() as other:
        other.ask("use", sink="agent.sinks.database.DatabaseSink", options={}, databases=names)
        asyncio.run(heard_after_a_cut(sinks[0], other))


@pytest.mark.once
def test_what_is_said_while_redis_is_away_is_stored_in_order_when_it_is_back(sinks: list[PumpedSink]) -> None:
    """It comes back empty, too: numbers go on all the same."""
    store = InMemoryStore()
    new_run(store)
    server = start_valkey()
    port = urlsplit(server.url).port
    sinks.append(RedisSink(store, url=server.url))
    seen: list[NumberedFrame] = []

    async def play() -> None:
        nonlocal server
        following = asyncio.create_task(followed(sinks[0], seen))
        writer = sinks[0].open("run-1", 1)
        writer.write({"kind": "title", "title": "before"})
        await writer.flush()
        await until(lambda: seen)
        await asyncio.to_thread(server.stop)
        for number in range(5):
            writer.write({"kind": "title", "title": str(number)})
            await writer.flush()
        await writer.end()
        assert len(seen) == 1
        server = await asyncio.to_thread(start_valkey, port=port)
        await following

    try:
        asyncio.run(play())
    finally:
        server.stop()
    assert [row.seq for row in seen] == list(range(1, 8))


def connections_of_the_database() -> int:
    """How many clients the server serves; it lets one go a moment after the client has closed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend'"
        )
        found: int = cursor.fetchone()[0]
        return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_on("postgresql")
def test_a_thousand_followers_that_come_and_go_leave_no_connection(sinks: list[PumpedSink]) -> None:
    sinks.append(DatabaseSink(OrmStore()))

    async def come_and_go() -> None:
        await in_db(new_run, OrmStore())
        writer = sinks[0].open("run-1", 1)
        writer.write({"kind": "step-start"})
        await writer.flush()
        for _ in range(1000):
            async with aclosing(cast("AsyncGenerator[NumberedFrame, None]", sinks[0].subscribe("run-1"))) as frames:
                await anext(frames)
        writer.abandon()

    asyncio.run(come_and_go())
    own_thread, listener = 1, 1
    assert connections_of_the_database() <= own_thread + listener + DB_THREADS
    sinks[0].stop()
    close_threads()
    assert eventually(lambda: connections_of_the_database() == own_thread)
