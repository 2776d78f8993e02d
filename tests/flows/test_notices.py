"""Whoever has a conversation open is told that it changed: after the commit, in this process and in the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.db import transaction

from agent.db import in_db
from agent.domain.commands import ThreadPatch
from agent.errors import ModelError
from agent.flows import threads
from agent.flows.cancel import cancel
from agent.sinks.broadcast import stop_broadcast
from agent.sinks.listener import group_of
from agent.sinks.notices import TYPE, stop_listening, thread_changed, unwatch, watch
from tests.flows.conftest import ALICE, Site

MakeSite = Callable[..., Site]
SHARED = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"}


@contextmanager
def noticed(thread_id: str) -> Iterator[list[str]]:
    """The reasons that are given for the thread meanwhile."""
    reasons: list[str] = []

    def take(thread: str, reason: str) -> None:
        assert thread == thread_id
        reasons.append(reason)

    asyncio.run(watch(thread_id, take))
    try:
        yield reasons
    finally:
        unwatch(thread_id, take)


def test_a_turn_is_noticed_when_it_starts_gets_its_title_and_settles(site: MakeSite) -> None:
    desk = site(["Hi.", "Yes."])
    first = desk.send("Where is it?")
    with noticed(first.thread_id) as reasons:
        desk.drive(first.run_id)
        desk.turn("And now?", thread_id=first.thread_id)
    assert reasons == ["title", "run-settled", "run-started", "run-settled"]


def test_a_failed_and_a_cancelled_run_are_noticed_as_settled(site: MakeSite) -> None:
    desk = site([ModelError("no")])
    first = desk.send()
    with noticed(first.thread_id) as reasons:
        desk.drive(first.run_id)
        waiting = desk.send(thread_id=first.thread_id)
        cancel(ALICE, waiting.run_id)
    assert reasons == ["run-settled", "title", "run-started", "run-settled"]


def test_a_new_title_is_noticed_and_another_pin_is_not(site: MakeSite) -> None:
    thread_id = site(["Hi."]).send().thread_id
    with noticed(thread_id) as reasons:
        threads.patch(ALICE, thread_id, ThreadPatch(default_agent=None))
        threads.patch(ALICE, thread_id, ThreadPatch(title="Mine"))
    assert reasons == ["title"]


def test_what_is_rolled_back_is_not_noticed(site: MakeSite) -> None:
    desk = site(["Hi."])
    thread_id = desk.turn().thread_id
    with noticed(thread_id) as reasons, transaction.atomic():
        desk.send(thread_id=thread_id)
        transaction.set_rollback(True)
    assert reasons == []


def test_a_watcher_that_raises_is_logged_and_the_others_hear(site: MakeSite, caplog: pytest.LogCaptureFixture) -> None:
    def broken(thread_id: str, reason: str) -> None:
        raise ValueError(reason)

    with noticed("t") as reasons:
        asyncio.run(watch("t", broken))
        thread_changed("t", "queue")
        unwatch("t", broken)
        thread_changed("t", "queue")
    assert reasons == ["queue", "queue"]
    assert [record.name for record in caplog.records] == ["agent.notices"]


@pytest.mark.once
def test_a_notice_travels_to_and_from_other_processes(settings: Any, redis_url: str) -> None:
    settings.CHANNEL_LAYERS = {"default": {**SHARED, "CONFIG": {"hosts": [redis_url]}}}
    heard: list[str] = []

    async def story() -> dict[str, Any]:
        layer, came = get_channel_layer(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def take(thread_id: str, reason: str) -> None:
            heard.append(reason)
            loop.call_soon_threadsafe(came.set)

        assert layer is not None
        await watch("a thread of ours", take)
        group, elsewhere = group_of("a thread of ours"), await layer.new_channel()
        await layer.group_add(group, elsewhere)
        await in_db(thread_changed, "a thread of ours", "title")
        sent: dict[str, Any] = await asyncio.wait_for(layer.receive(elsewhere), 20)
        assert heard == ["title"]  # at once, and not again when it comes back over the layer
        came.clear()
        await layer.group_send(group, {**sent, "from": "another process", "reason": "queue"})
        await asyncio.wait_for(came.wait(), 20)
        unwatch("a thread of ours", take)
        return sent

    try:
        sent = asyncio.run(story())
    finally:
        stop_listening()
        stop_broadcast()
    assert (sent["type"], sent["threadId"], sent["reason"]) == (TYPE, "a thread of ours", "title")
    assert heard == ["title", "queue"]


@pytest.mark.once
def test_a_layer_that_is_gone_keeps_nobody_from_watching(
    settings: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.CHANNEL_LAYERS = {"default": {**SHARED, "CONFIG": {"hosts": ["redis://127.0.0.1:1/0"]}}}
    caplog.set_level(logging.WARNING, "agent.notices")
    try:
        with noticed("t") as reasons:
            thread_changed("t", "queue")
    finally:
        stop_listening()
        stop_broadcast()
    assert reasons == ["queue"]
    assert {record.name for record in caplog.records} == {"agent.notices", "agent.signals"}
