"""What happens is told after its commit, once, in counts and ids, and never stands in the way of a turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.db import connection, transaction

from agent import signals
from agent.db import in_db
from agent.domain.actor import Actor
from agent.domain.model_calls import FrameEmitter, ModelRequest, Reply
from agent.errors import ModelError, OverQuota
from agent.flows.cancel import cancel
from agent.flows.driver import Driver
from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, isolated_registry, tool
from agent.signals import SIGNALS, Event
from agent.sinks.broadcast import GROUP, stop_broadcast
from agent.store import OrmStore
from agent.testing import run_turn_in_memory
from tests.flows.conftest import ALICE, Site
from tests.flows.test_replay import UNITS, play

MakeSite = Callable[..., Site]
SECRET = "tell-nobody-42"


@contextmanager
def heard(*names: str) -> Iterator[list[Event]]:
    """The events that are sent meanwhile, of all signals or of those named."""
    events: list[Event] = []

    def take(sender: object, event: Event, **_: object) -> None:
        events.append(event)

    chosen = [SIGNALS[name] for name in names] or [signals.happened]
    for signal in chosen:
        signal.connect(take)
    try:
        yield events
    finally:
        for signal in chosen:
            signal.disconnect(take)


@pytest.fixture
def look(site: MakeSite) -> None:
    @tool
    def look_up(number: int) -> str:
        """Look a number up."""
        if number == 13:
            raise ValueError(SECRET)
        return SECRET

    agent(name="shop", prompt=SECRET, tools=[look_up])(type("Shop", (), {}))


def two_calls(request: ModelRequest) -> ScriptedReply:
    if request.messages[-1].tool_results:
        return ScriptedReply(f"Done. {SECRET}", reasoning=SECRET)
    calls = [call("look_up", "a", number=1), call("look_up", "b", number=13), call("guess", "c", what=SECRET)]
    return ScriptedReply(f"{SECRET} Looking.", calls=calls)


@pytest.mark.usefixtures("look")
def test_a_turn_is_told_from_its_message_to_its_end(site: MakeSite) -> None:
    desk = site(two_calls)
    with heard() as events:
        run = desk.turn(f"Where is it? {SECRET}", actor=Actor("alice", tenant_ref="north"))
    told = [(event.event, event.payload.get("role") or event.payload.get("status")) for event in events]
    assert told == [
        ("message", "user"),
        ("run.started", None),
        ("message", "assistant"),
        ("tool-call", "failed"),
        ("tool-call", "auto_executed"),
        ("tool-call", "failed"),
        ("message", "assistant"),
        ("run.finished", "completed"),
    ]
    for event in events:
        assert event.payload["runId"] == run.id
        assert (event.payload["actorRef"], event.payload["tenantRef"]) == ("alice", "north")
        assert json.loads(json.dumps(event.to_wire()))["ts"].endswith("Z")
    unknown, good, bad = (event.payload for event in events if event.event == "tool-call")
    assert (unknown["toolName"], unknown["toolType"], unknown["durationMs"]) == (None, "read", None)
    assert (good["toolName"], good["toolType"]) == ("look_up", "read")
    assert isinstance(good["durationMs"], int)
    assert bad["status"] == "failed"
    end = events[-1].payload
    used = desk.store.usage_of_run(run.id)
    assert (end["steps"], end["attempt"]) == (2, 1)
    assert end["inputTokens"] == sum(entry.input_tokens for entry in used)
    assert end["outputTokens"] == sum(entry.output_tokens for entry in used)
    assert abs(int(str(end["durationMs"])) - int(str(run.duration_ms))) <= 50


@pytest.mark.usefixtures("look")
def test_no_word_of_a_person_a_model_or_a_tool_is_told(site: MakeSite) -> None:
    with heard() as events:
        site(two_calls).turn(f"Where is it? {SECRET}")
    assert len(events) == 8
    assert SECRET not in str([event.to_wire() for event in events])
    assert "guess" not in str(events)


def test_each_event_has_a_signal_of_its_own_and_its_rows_are_there(site: MakeSite) -> None:
    desk, seen = site(["Hi."]), []

    def look(sender: object, event: Event, **_: object) -> None:
        run = OrmStore().get_run(str(event.payload["runId"]))
        assert run is not None
        seen.append((event.event, run.status, connection.in_atomic_block))

    signals.run_finished.connect(look)
    signals.message.connect(look)
    try:
        desk.turn()
    finally:
        signals.run_finished.disconnect(look)
        signals.message.disconnect(look)
    assert seen == [
        ("message", "queued", False),
        ("message", "completed", False),
        ("run.finished", "completed", False),
    ]


def test_what_is_rolled_back_is_not_told(site: MakeSite) -> None:
    desk = site(["Hi."])
    with heard() as events, transaction.atomic():
        desk.send()
        transaction.set_rollback(True)
    assert events == []
    assert desk.runner.started == []


def test_a_failed_run_is_told_by_its_code(site: MakeSite) -> None:
    desk = site([ModelError(f"no: {SECRET}")])
    with heard("run.failed", "run.finished") as events:
        run = desk.turn()
    [event] = events
    assert (event.event, event.payload["code"], event.payload["steps"]) == ("run.failed", "run_failed", 0)
    assert run.status == "failed"
    assert SECRET not in str(event)


def test_a_run_that_nobody_works_on_is_told_as_cancelled(site: MakeSite) -> None:
    desk = site(["Hi."])
    admitted = desk.send()
    with heard() as events:
        assert cancel(ALICE, admitted.run_id)
    [event] = events
    assert (event.event, event.payload["status"], event.payload["steps"]) == ("run.finished", "cancelled", 0)
    assert event.payload["durationMs"] is None


def test_what_was_shown_of_a_stopped_answer_is_told_as_a_message(site: MakeSite) -> None:
    drivers: list[Driver] = []

    class Endless:
        """Says one word, is stopped, and would wait for ever."""

        async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
            emit({"kind": "text", "text": "one "})
            asyncio.get_running_loop().call_soon(drivers[0].cancel)
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    desk = site([], PROVIDERS={"endless": Endless()})
    admitted = desk.send()
    with heard() as events:
        desk.drive(admitted.run_id, meanwhile=drivers.append)
    assert [event.event for event in events] == ["run.started", "message", "run.finished"]
    [row] = desk.messages(admitted.thread_id)[1:]
    assert events[1].payload["messageId"] == row.id
    assert events[2].payload["status"] == "cancelled"


@pytest.mark.parametrize("after_commit", [False, True])
@pytest.mark.parametrize("unit", range(1, UNITS + 1))
def test_a_turn_cut_at_a_commit_is_told_once_and_its_tools_as_repeated(
    site: MakeSite, unit: int, after_commit: bool
) -> None:
    @tool
    def look(number: int) -> int:
        """Look a number up."""
        return number

    agent(name="shop", prompt="p", tools=[look])(type("Shop", (), {}))

    def told(*args: int | None, **kwargs: bool) -> list[tuple[str, object]]:
        with heard() as events:
            play(site, *args, **kwargs)
        return [(event.event, event.payload.get("toolName")) for event in events]

    undisturbed = told(None)
    cut = told(unit, after_commit=after_commit)
    repeated = [("tool.retry", "look")] * (2 if (unit, after_commit) in {(2, True), (3, False)} else 0)
    assert [event for event in cut if event[0] != "tool.retry"] == undisturbed
    assert [event for event in cut if event[0] == "tool.retry"] == repeated


def test_a_turn_in_memory_is_told_too() -> None:
    with heard() as events, isolated_registry():
        agent(name="shop", prompt="p", tools=[])(type("Shop", (), {}))
        run_turn_in_memory(["Hi."])
    assert [event.event for event in events] == ["message", "run.started", "message", "run.finished"]


class Blocked:
    def report(self, actor: Actor) -> dict[str, Any]:
        return {"blocked": {"period": "day", "reason": "enough"}}


def test_who_is_over_the_limit_is_told(site: MakeSite) -> None:
    desk = site(["Hi."], QUOTA={"day": {"tokens": 1}}, QUOTA_POLICY=Blocked())
    with heard() as events, pytest.raises(OverQuota):
        desk.send()
    [event] = events
    assert event.event == "quota.exceeded"
    assert event.payload == {
        "actorRef": "alice",
        "tenantRef": None,
        "runId": None,
        "threadId": None,
        "period": "day",
    }


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1)], ids=["an error", "an exit"])
def test_what_a_receiver_raises_is_logged_and_breaks_nothing(
    site: MakeSite, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def broken(sender: object, event: Event, **_: object) -> None:
        raise error

    signals.happened.connect(broken)
    try:
        with heard() as events:
            run = site(["Hi."]).turn()
    finally:
        signals.happened.disconnect(broken)
    assert run.status == "completed"
    assert len(caplog.records) >= 4
    assert {record.name for record in caplog.records} <= {"django.dispatch", "agent.signals"}
    if isinstance(error, Exception):
        assert len(events) == 4  # the other receivers heard all of it


SHARED = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"}


def test_events_reach_other_processes_over_a_shared_layer(settings: Any, site: MakeSite, redis_url: str) -> None:
    settings.CHANNEL_LAYERS = {"default": {**SHARED, "CONFIG": {"hosts": [redis_url]}}}
    desk = site(["Hi."])

    async def listen() -> list[dict[str, Any]]:
        layer = get_channel_layer()
        assert layer is not None
        channel = await layer.new_channel()
        await layer.group_add(GROUP, channel)
        await in_db(desk.turn)
        received: list[dict[str, Any]] = []
        async with asyncio.timeout(20):
            while not received or received[-1]["event"] != "run.finished":
                received.append(await layer.receive(channel))
        await layer.group_discard(GROUP, channel)
        return received

    try:
        with heard() as events:
            received = asyncio.run(listen())
    finally:
        stop_broadcast()
    assert received == [{"type": "agent.event", **event.to_wire()} for event in events]


def test_a_layer_that_is_gone_costs_a_turn_nothing_and_the_log_one_line(
    settings: Any,
    site: MakeSite,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.CHANNEL_LAYERS = {"default": {**SHARED, "CONFIG": {"hosts": ["redis://127.0.0.1:1/0"]}}}
    try:
        assert site(["Hi."]).turn().status == "completed"
    finally:
        stop_broadcast()
    assert [record.getMessage() for record in caplog.records if record.name == "agent.signals"] == [
        "events do not reach other processes at the moment"
    ]
