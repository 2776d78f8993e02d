"""A server that hangs instead of going away, and two that clean up at once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis
from django.db import connections

from agent.db import close_threads
from agent.domain.clock import epoch_ms
from agent.domain.snapshots import NumberedFrame
from agent.models import StreamFrame
from agent.sinks.database import DatabaseSink
from agent.sinks.redis import ANSWER_SECONDS, CONNECT_SECONDS, RedisSink
from agent.store.orm import OrmStore
from agent.testing import InMemoryStore
from agent.testing.contracts.rows import new_run
from tests.services import start_valkey
from tests.sinks.test_wakeups import followed, until

AT_MOST = 3 * (ANSWER_SECONDS + CONNECT_SECONDS)


@pytest.fixture
def hanging() -> Iterator[tuple[str, int]]:
    """A server of our own, with the process to stop and to let go on."""
    server = start_valkey()
    pid = int(redis.Redis.from_url(server.url).info("server")["process_id"])
    yield server.url, pid
    os.kill(pid, signal.SIGCONT)
    server.stop()


@pytest.mark.once
def test_a_redis_that_hangs_holds_a_turn_up_for_seconds_and_loses_and_doubles_nothing(hanging: tuple[str, int]) -> None:
    url, pid = hanging
    store = InMemoryStore()
    new_run(store)
    sink = RedisSink(store, url=url)
    seen: list[NumberedFrame] = []

    async def play() -> None:
        following = asyncio.create_task(followed(sink, seen))
        writer = sink.open("run-1", 1)
        writer.write({"kind": "title", "title": "before"})
        await writer.flush()
        await until(lambda: seen)
        os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        for number in range(5):
            writer.write({"kind": "title", "title": str(number)})
            await writer.flush()
        await writer.end()
        assert time.monotonic() - began < AT_MOST
        os.kill(pid, signal.SIGCONT)
        await following

    try:
        asyncio.run(play())
    finally:
        sink.stop()
        close_threads()
    assert [row.seq for row in seen] == list(range(1, 8))


@pytest.mark.django_db(transaction=True)
def test_two_that_purge_at_once_remove_each_stream_once_between_them() -> None:
    store = OrmStore()
    then = epoch_ms(store.clock() - timedelta(hours=2))
    runs = [f"run-{number}" for number in range(60)]
    StreamFrame.objects.bulk_create(
        StreamFrame(run_id=run_id, seq=seq, frame="{}", created_at_ms=then) for run_id in runs for seq in (1, 2)
    )
    sinks = [DatabaseSink(OrmStore(), ttl_seconds=3600, purge_batch=7) for _ in range(2)]
    gone: list[int] = []
    failed: list[BaseException] = []

    def purge(sink: DatabaseSink) -> None:
        try:
            gone.append(sink.purge_expired())
        except BaseException as error:
            failed.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=purge, args=(sink,)) for sink in sinks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failed == []
    assert sum(gone) >= len(runs)
    assert not StreamFrame.objects.exists()
    for sink in sinks:
        sink.stop()
