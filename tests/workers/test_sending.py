"""The web process's side: what is sent, and that a broker that is down holds nobody up."""

from __future__ import annotations

import json
import socket
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing

import celery
import pytest
import redis

from agent import tasks
from agent.domain.actor import Actor
from agent.flows import dispatch
from agent.flows.admission import chat
from agent.flows.recovery import recover, redispatch
from agent.flows.starts import Send
from agent.runners import worker
from agent.runners.celery import CeleryRunner, connection
from agent.store import get_store
from tests.workers.process import PATIENCE

ALICE = Actor("alice")
SOON = 3.0  # seconds that a person would not notice on a busy machine


@pytest.fixture
def queued(broker: str, queue: str) -> Iterator[redis.Redis]:
    with closing(redis.Redis.from_url(broker)) as client:
        yield client


@pytest.fixture
def slot() -> Iterator[None]:
    """The loop of a worker process, ended with the test."""
    yield
    worker.stop()


def send(text: str = "Hello") -> str:
    began = time.monotonic()
    run_id = chat(ALICE, Send(message=text)).run_id
    assert time.monotonic() - began < SOON
    run = get_store().get_run(run_id)
    assert run is not None
    assert run.status == "queued"
    return run_id


def messages(queued: redis.Redis, queue: str) -> list[tuple[str, list[object], dict[str, object]]]:
    """Task, arguments and keyword arguments of each message."""
    found = []
    for raw in reversed(queued.lrange(queue, 0, -1)):
        message = json.loads(raw)
        args, kwargs, _ = json.loads(b64decode(message["body"]))
        found.append((message["headers"]["task"], args, kwargs))
    return found


def test_a_message_carries_the_name_of_a_task_and_an_id(web: CeleryRunner, queued: redis.Redis, queue: str) -> None:
    run_ids = [send(), send("A secret that no broker may see")]
    assert web.wait(PATIENCE)
    assert messages(queued, queue) == [("agent.run_turn", [run_id], {}) for run_id in run_ids]
    assert b"secret" not in b"".join(queued.lrange(queue, 0, -1))  # type: ignore[arg-type]


def test_nothing_is_sent_when_the_unit_is_taken_back(web: CeleryRunner, queued: redis.Redis, queue: str) -> None:
    def regret() -> None:
        with get_store().atomic():
            chat(ALICE, Send(message="Hello"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        regret()
    assert web.wait(PATIENCE)
    assert messages(queued, queue) == []


def test_a_broker_that_refuses_holds_nobody_up_and_recovery_sends_later(
    web: CeleryRunner, queued: redis.Redis, queue: str, broker: str
) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        celery.current_app.conf.update(broker_url=f"redis://127.0.0.1:{taken.getsockname()[1]}/0")
        run_ids = [send() for _ in range(3)]
        assert web.wait(PATIENCE)
    celery.current_app.conf.update(broker_url=broker)
    assert recover(queued_for=0) == 3
    assert web.wait(PATIENCE)
    assert [args for _, args, _ in messages(queued, queue)] == [[run_id] for run_id in run_ids]
    assert redispatch() == 0  # they are somebody's for a minute


def test_a_broker_that_hangs_holds_nobody_up(web: CeleryRunner, queued: redis.Redis, queue: str, broker: str) -> None:
    conf = celery.current_app.conf
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:  # takes connections, and says nothing
        conf.update(
            broker_url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0",
            broker_transport_options={"socket_timeout": 0.2},  # what a host has set stays
        )
        for _ in range(3):
            send()
        assert web.wait(PATIENCE)
    conf.update(broker_url=broker, broker_transport_options={})
    assert recover(queued_for=0) == 3
    assert web.wait(PATIENCE)
    assert len(messages(queued, queue)) == 3


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize(
    ("url", "bounded"),
    [
        ("redis://127.0.0.1/0", {"socket_timeout", "socket_connect_timeout"}),
        ("amqp://guest@127.0.0.1//", {"read_timeout", "write_timeout"}),
        ("memory://", set()),
    ],
)
def test_no_transport_waits_for_ever(url: str, bounded: set[str]) -> None:
    celery.current_app.conf.update(broker_url=url)
    made = connection()
    options = made.transport_options or {}
    assert {name for name in options if name.endswith("timeout") and "retries" not in name} == bounded
    assert all(0 < options[name] <= 5 for name in bounded)
    assert (options["max_retries"], made.connect_timeout) == (0, 5)


def test_a_connection_that_the_broker_has_closed_is_made_anew(
    web: CeleryRunner, queued: redis.Redis, queue: str
) -> None:
    send()
    assert web.wait(PATIENCE)
    queued.client_kill_filter(_type="normal", skipme=True)
    send()
    assert web.wait(PATIENCE)
    assert len(messages(queued, queue)) == 2


def test_a_process_that_ends_sends_what_it_has(web: CeleryRunner, queued: redis.Redis, queue: str) -> None:
    for _ in range(20):
        send()
    web.stop(PATIENCE)
    assert len(messages(queued, queue)) == 20


@pytest.mark.usefixtures("slot")
def test_a_message_that_comes_twice_or_late_changes_nothing(web: CeleryRunner) -> None:
    run_id = send("at once")
    deliveries = [threading.Thread(target=tasks.run_turn, args=(run_id,)) for _ in range(4)]
    for each in deliveries:
        each.start()
    for each in deliveries:
        each.join(PATIENCE)
    store = get_store()
    run = store.get_run(run_id)
    assert run is not None
    assert (run.status, run.attempt) == ("completed", 1)
    before = (run, store.read_frames(run_id, 0), store.usage_of_run(run_id))
    tasks.run_turn(run_id)
    tasks.run_turn("01a22e8e-0f28-7608-a668-00d461bed8ac")  # of no run
    assert (store.get_run(run_id), store.read_frames(run_id, 0), store.usage_of_run(run_id)) == before


@pytest.mark.usefixtures("slot")
def test_a_released_run_is_sent_again_at_once(web: CeleryRunner, queued: redis.Redis, queue: str) -> None:
    run_id = send()
    assert web.wait(PATIENCE)
    worker.here().hand_over()  # the worker is stopping, and has this one prefetched
    tasks.run_turn(run_id)
    assert [args for _, args, _ in messages(queued, queue)] == [[run_id], [run_id]]
    run = get_store().get_run(run_id)
    assert run is not None
    assert (run.status, run.attempt) == ("queued", 0)


def test_the_tasks_of_beat_do_what_the_commands_do(web: CeleryRunner, queued: redis.Redis, queue: str) -> None:
    run_id = send()
    assert web.wait(PATIENCE)
    store = get_store()
    lease = store.claim_run(run_id, "w1", 60)
    assert lease is not None
    assert store.release_run(lease)
    tasks.recover()
    tasks.purge()
    assert web.wait(PATIENCE)
    assert len(messages(queued, queue)) == 2
    dispatch.signal(run_id)  # nobody drives it here, and nobody is disturbed
