"""A run that changes its worker: released at a border, broken off after the grace, cut from its database, cancelled."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from agent.domain.model_calls import ModelRequest
from agent.domain.runs import Run, RunLease
from agent.errors import NotFound
from agent.flows import dispatch
from agent.flows.cancel import cancel
from agent.flows.recovery import redispatch
from agent.providers.scripted import Answer, ScriptedReply, call
from agent.registry import ToolContext, agent, tool
from agent.runners.inline import InlineRunner
from agent.store import OrmStore
from tests.flows.conftest import ALICE, Site

MakeSite = Callable[..., Site]
PATIENCE = 20


class Stage:
    """Where a test and a turn wait for each other."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go = threading.Event()
        self.keys: list[str] = []

    async def hold(self) -> None:
        """Say that this point is reached, and wait to be told."""
        self.reached.set()
        async with asyncio.timeout(PATIENCE):
            while not self.go.is_set():  # noqa: ASYNC110 - set on another thread
                await asyncio.sleep(0.005)

    def wait(self) -> None:
        assert self.reached.wait(PATIENCE)


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def inline(site: MakeSite) -> Iterator[InlineRunner]:
    """A process's own runner."""
    runner = InlineRunner()
    before = dispatch.use(runner)
    yield runner
    dispatch.use(before)
    runner.stop(0)


def declare(stage: Stage, *, holds: bool = False) -> None:
    """An agent with a tool that may hold."""

    @tool
    async def look(ctx: ToolContext, number: int) -> int:
        """Look a number up."""
        stage.keys.append(ctx.idempotency_key)
        if holds:
            await stage.hold()
        return number

    agent(name="desk", prompt="p", tools=[look])(type("Desk", (), {}))


def looks_first(request: ModelRequest) -> Answer:
    if request.messages[-1].tool_results:
        return "Seven is here."
    return ScriptedReply("Looking.", calls=[call("look", number=7)])


def stored(desk: Site, run_id: str) -> Run:
    run = desk.store.get_run(run_id)
    assert run is not None
    return run


def restarts(desk: Site, run_id: str) -> list[int]:
    return [frame["step"] for frame in desk.frames(run_id) if frame.get("kind") == "step-restart"]


def keys(desk: Site, run_id: str) -> list[str | None]:
    return [row.step_key for row in desk.store.usage_of_run(run_id)]


def check_said(desk: Site, run: Run, *texts: str) -> None:
    assert run.status == "completed"
    assert [message.content for message in desk.messages(run.thread_id)[1:]] == list(texts)
    assert sum("end" in frame for frame in desk.frames(run.id)) == 1


# ---- a process is stopped --------------------------------------------------------------------------------------------


def test_a_turn_is_left_at_its_border_and_nothing_is_done_twice(
    site: MakeSite, inline: InlineRunner, stage: Stage
) -> None:
    desk = site(looks_first)
    declare(stage, holds=True)
    run_id = desk.send().run_id
    stage.wait()
    stopping = threading.Thread(target=inline.stop, args=(PATIENCE,))
    stopping.start()
    stage.go.set()
    stopping.join()
    run = stored(desk, run_id)
    assert (run.status, run.lease_owner, run.dispatched_at, run.effect_name) == ("queued", None, None, None)
    assert redispatch() == 1  # by the next look of another process, without waiting for a lease
    run = desk.drive(run_id)
    check_said(desk, run, "Looking.", "Seven is here.")
    assert (run.attempt, run.recoveries, run.retries, restarts(desk, run_id)) == (2, 0, 0, [])
    assert keys(desk, run_id) == ["llm:0", "llm:1"]
    assert len(stage.keys) == 1


def test_a_model_call_is_broken_off_after_the_grace_and_its_spend_is_recorded(
    site: MakeSite, inline: InlineRunner, stage: Stage
) -> None:
    async def slow(request: ModelRequest) -> Answer:
        await stage.hold()
        return "At last."

    desk = site(slow)
    run_id = desk.send().run_id
    stage.wait()
    began = time.monotonic()
    inline.stop(0.2)
    assert time.monotonic() - began < 10
    run = stored(desk, run_id)
    assert (run.status, run.effect_name) == ("queued", "llm:0")
    assert keys(desk, run_id) == ["llm:0#1.1"]
    stage.go.set()
    run = desk.drive(run_id)
    check_said(desk, run, "At last.")
    assert (run.attempt, run.recoveries, run.retries, restarts(desk, run_id)) == (2, 0, 1, [0])
    assert keys(desk, run_id) == ["llm:0#1.1", "llm:0"]  # by the one that left, and not again by the next


def test_a_tool_is_broken_off_after_the_grace_and_run_again_under_its_key(
    site: MakeSite, inline: InlineRunner, stage: Stage
) -> None:
    desk = site(looks_first)
    declare(stage, holds=True)
    run_id = desk.send().run_id
    stage.wait()
    inline.stop(0.2)
    assert stored(desk, run_id).status == "queued"
    stage.go.set()
    run = desk.drive(run_id)
    check_said(desk, run, "Looking.", "Seven is here.")
    assert (run.attempt, run.retries) == (2, 1)
    assert len(stage.keys) == 2
    assert len({*stage.keys}) == 1


def test_a_stopped_process_takes_no_run_up(site: MakeSite, inline: InlineRunner) -> None:
    desk = site(["Hello."])
    inline.stop(0)
    run_id = desk.send().run_id
    assert inline.wait(PATIENCE)
    assert stored(desk, run_id).status == "queued"


# ---- the database is cut ---------------------------------------------------------------------------------------------


class Cut(OrmStore):
    """Loses its connection at some records."""

    cuts = 0

    def record_steps(self, lease: RunLease, steps: Any, **more: Any) -> bool:
        if self.cuts and any(step.name.startswith("tool:") for step in steps):
            self.cuts -= 1
            raise OperationalError("server closed the connection unexpectedly")
        return super().record_steps(lease, steps, **more)


def test_a_lost_connection_fails_no_run(site: MakeSite, stage: Stage) -> None:
    store = Cut()
    desk = site(looks_first, STORE=store)
    declare(stage)
    run_id = desk.send().run_id
    store.cuts = 1
    assert desk.drive(run_id).status == "running"
    assert redispatch() == 1  # its lease was given back, so nobody waits for it
    run = desk.drive(run_id)
    check_said(desk, run, "Looking.", "Seven is here.")
    assert (run.attempt, run.retries, len({*stage.keys})) == (2, 1, 1)


def test_a_database_that_refuses_each_time_does_not_keep_a_run_for_ever(site: MakeSite, stage: Stage) -> None:
    store = Cut()
    desk = site(looks_first, STORE=store, RUN_MAX_RECOVERIES=2)
    declare(stage)
    run_id = desk.send().run_id
    store.cuts = 9
    for _ in range(3):
        assert desk.drive(run_id).status == "running"
    assert redispatch() == 1
    assert (stored(desk, run_id).status, stored(desk, run_id).error_code) == ("failed", "run_failed")
    assert len(stage.keys) == 3


class Deaf(OrmStore):
    """Renews no lease."""

    def renew_run(self, lease: RunLease) -> bool:
        raise OperationalError("could not connect")


def test_a_worker_that_cannot_renew_its_lease_stops_when_it_is_over(site: MakeSite, stage: Stage) -> None:
    async def slow(request: ModelRequest) -> Answer:
        await stage.hold()
        return "Too late."

    desk = site(slow, STORE=Deaf(), RUN_LEASE_SECONDS=1)
    run_id = desk.send().run_id
    run = desk.drive(run_id)
    assert (run.status, run.attempt) == ("running", 1)
    assert keys(desk, run_id) == []
    assert redispatch() == 1


# ---- somebody else has it --------------------------------------------------------------------------------------------


def test_of_two_workers_one_drives_and_a_late_message_finds_nothing(site: MakeSite, stage: Stage) -> None:
    async def slow(request: ModelRequest) -> Answer:
        await stage.hold()
        return "Once."

    desk = site(slow)
    run_id = desk.send().run_id
    workers = [InlineRunner(), InlineRunner()]
    began = [worker.work_on(run_id) for worker in workers for _ in range(3)]  # delivered again and again
    stage.wait()
    stage.go.set()
    assert [each.result(PATIENCE) for each in began] == [False] * 6
    assert workers[0].work_on(run_id).result(PATIENCE) is False  # late
    for worker in workers:
        worker.stop(0)
    run = stored(desk, run_id)
    check_said(desk, run, "Once.")
    assert (run.attempt, len(desk.provider.requests)) == (1, 1)


# ---- cancel ----------------------------------------------------------------------------------------------------------


def test_a_cancel_lets_a_tool_finish_and_records_it(site: MakeSite, inline: InlineRunner, stage: Stage) -> None:
    desk = site(looks_first)
    declare(stage, holds=True)
    run_id = desk.send().run_id
    stage.wait()
    assert cancel(ALICE, run_id)
    stage.go.set()
    assert inline.wait(PATIENCE)
    run = stored(desk, run_id)
    assert run.status == "cancelled"
    results = desk.messages(run.thread_id)[-1].tool_results or []
    assert [result["output"] for result in results] == [7]
    assert [step.name.partition(":")[0] for step in desk.steps(run_id)][-2:] == ["tool", "persist"]
    assert desk.frames(run_id)[-2:] == [{"kind": "cancelled"}, {"end": None}]
    assert len(desk.provider.requests) == 1


def test_a_cancel_reaches_a_worker_in_another_process_with_its_heartbeat(site: MakeSite, stage: Stage) -> None:
    async def slow(request: ModelRequest) -> Answer:
        await stage.hold()
        return "Too late."

    desk = site(slow, RUN_LEASE_SECONDS=1)
    run_id = desk.send().run_id
    elsewhere = InlineRunner()
    driving = elsewhere.work_on(run_id)
    stage.wait()
    assert cancel(ALICE, run_id)
    assert desk.runner.signalled == [run_id]  # which nobody there hears
    assert driving.result(PATIENCE) is False
    elsewhere.stop(0)
    assert stored(desk, run_id).status == "cancelled"
    assert keys(desk, run_id) == ["llm:0#1.1"]


def test_a_call_that_nobody_finished_does_not_poison_the_next_turn(
    site: MakeSite, inline: InlineRunner, stage: Stage
) -> None:
    """The process dies while a tool runs, the person stops waiting, and says something else."""

    def script(request: ModelRequest) -> Answer:
        return "Hello." if request.messages[-1].content == "hello" else looks_first(request)

    desk = site(script)
    declare(stage, holds=True)
    admitted = desk.send("look")
    driving = inline.work_on(admitted.run_id)
    stage.wait()
    inline.drop(admitted.run_id)
    assert inline.wait(PATIENCE)
    assert driving.result(PATIENCE) is False
    assert stored(desk, admitted.run_id).status == "running"
    assert cancel(ALICE, admitted.run_id)
    desk.store.clock = lambda: timezone.now() + timedelta(seconds=61)
    assert desk.drive(admitted.run_id).status == "cancelled"
    assert len(stage.keys) == 1
    dispatch.use(desk.runner)
    for _ in range(2):
        assert desk.turn("hello", thread_id=admitted.thread_id).status == "completed"
        (exchange,) = (message for message in desk.provider.requests[-1].messages if message.tool_calls)
        assert [call.id for call in exchange.tool_calls] == [result.id for result in exchange.tool_results]
        assert "stopped before" in str(exchange.tool_results[0])


def test_a_cancel_settles_a_run_that_waits_for_a_person(site: MakeSite) -> None:
    desk = site(["Hello."])
    run_id = desk.send().run_id
    lease = desk.store.claim_run(run_id, "w1", 60)
    assert lease is not None
    assert desk.store.park_run(lease, [])
    assert cancel(ALICE, run_id)
    run = stored(desk, run_id)
    assert (run.status, run.error_code) == ("cancelled", None)
    assert desk.store.owner_of_active_run(run_id) is None
    assert desk.frames(run_id) == [{"kind": "cancelled"}, {"end": None}]
    assert desk.drive(run_id).status == "cancelled"  # a message that comes late


def test_a_cancel_of_a_run_whose_worker_is_gone_is_carried_out_by_the_next(site: MakeSite) -> None:
    desk = site(["Hello."])
    run_id = desk.send().run_id
    lease = desk.store.claim_run(run_id, "gone", 60)
    assert lease is not None
    assert cancel(ALICE, run_id)
    assert stored(desk, run_id).status == "running"
    desk.store.clock = lambda: timezone.now() + timedelta(seconds=61)
    assert redispatch() == 1
    assert desk.drive(run_id).status == "cancelled"
    assert len(desk.provider.requests) == 0


def test_a_finished_run_is_unknown_to_cancel(site: MakeSite) -> None:
    desk = site(["Hello."])
    run = desk.turn()
    with pytest.raises(NotFound):
        cancel(ALICE, run.id)
