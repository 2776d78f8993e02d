"""Our sinks keep every promise of the published contract, with a second process where that is what is promised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from django.db import connection
from redis import Redis

from agent.conf import agent_settings
from agent.db import close_threads
from agent.sinks.base import FrameSink
from agent.sinks.database import DatabaseSink
from agent.sinks.pumped import PumpedSink
from agent.sinks.redis import RedisSink
from agent.store.base import AgentStore
from agent.store.orm import OrmStore
from agent.testing import InMemoryFrameSink, InMemoryStore
from agent.testing.contracts import SettableClock
from agent.testing.contracts.sinks import SINK_CONTRACT, SinkCase, SinkSubject
from agent.testing.sink_process import OtherProcess

Make = Callable[..., FrameSink]


@pytest.fixture(scope="module")
def other() -> Iterator[OtherProcess]:
    with OtherProcess() as process:
        yield process
        process.ask("rest")


@pytest.fixture
def making() -> Iterator[Callable[[Callable[..., PumpedSink]], Make]]:
    """Sinks that are stopped when the test ends."""
    made: list[PumpedSink] = []

    def wrap(make: Callable[..., PumpedSink]) -> Make:
        def one(**options: object) -> PumpedSink:
            made.append(make(**options))
            return made[-1]

        return one

    yield wrap
    for sink in made:
        sink.stop()
    close_threads()


def elsewhere(other: OtherProcess, sink: str, fixed: dict[str, object], **options: object) -> OtherProcess:
    names = {"default": connection.settings_dict["NAME"]}
    other.ask("use", sink=sink, options={**fixed, **options}, databases={**names})
    return other


def with_clock(store: AgentStore) -> tuple[AgentStore, SettableClock]:
    store.clock = clock = SettableClock()
    return store, clock


@pytest.mark.parametrize("case", SINK_CONTRACT, ids=lambda case: case.name)
@pytest.mark.django_db(transaction=True)
def test_database(case: SinkCase, other: OtherProcess, making: Callable[..., Make]) -> None:
    assert agent_settings().sink == "database"
    store, clock = with_clock(OrmStore())
    case.run(
        SinkSubject(
            make=making(partial(DatabaseSink, store)),
            store=store,
            clock=clock,
            elsewhere=partial(elsewhere, other, "agent.sinks.database.DatabaseSink", {}),
            pushes=connection.vendor == "postgresql",
        )
    )
    other.ask("rest")


@pytest.mark.once
@pytest.mark.parametrize("case", SINK_CONTRACT, ids=lambda case: case.name)
@pytest.mark.django_db(transaction=True)
def test_redis(case: SinkCase, other: OtherProcess, making: Callable[..., Make], redis_url: str) -> None:
    Redis.from_url(redis_url).flushall()
    store, clock = with_clock(OrmStore())
    case.run(
        SinkSubject(
            make=making(partial(RedisSink, store, url=redis_url)),
            store=store,
            clock=clock,
            elsewhere=partial(elsewhere, other, "agent.sinks.redis.RedisSink", {"url": redis_url}),
        )
    )
    other.ask("rest")


@pytest.mark.once
@pytest.mark.parametrize("case", SINK_CONTRACT, ids=lambda case: case.name)
def test_memory(case: SinkCase, making: Callable[..., Make]) -> None:
    store, clock = with_clock(InMemoryStore())
    shared: dict[str, object] = {}

    def make(**options: object) -> PumpedSink:
        sink = InMemoryFrameSink(store, **options)
        sink._streams = shared.setdefault("streams", sink._streams)  # type: ignore[assignment]
        return sink

    case.run(SinkSubject(make=making(make), store=store, clock=clock))
