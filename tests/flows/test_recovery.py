"""Runs that nobody works on: found in batches, handed over once, given up when they get no further."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agent.domain.commands import Effect, NewRun
from agent.domain.ids import new_id
from agent.domain.runs import Run, Step
from agent.errors import StreamFailed
from agent.flows.cancel import cancel
from agent.flows.owners import is_gone, owner_name, this_process
from agent.flows.recovery import give_up, recover, redispatch, take_over
from agent.flows.stream import follow
from agent.store.base import AgentStore
from tests.flows.conftest import ALICE, Site

MakeSite = Callable[..., Site]


def later(store: AgentStore, seconds: float) -> None:
    store.clock = lambda: timezone.now() + timedelta(seconds=seconds)


def lapsed(store: AgentStore, count: int) -> list[str]:
    """Runs whose worker is silent since a minute."""
    run_ids = [new_id() for _ in range(count)]
    for run_id in run_ids:
        store.create_run(NewRun(id=run_id, thread_id=new_id(), actor=ALICE, input={}, dispatched=True))
        store.claim_run(run_id, "gone", 60)
    later(store, 61)
    return run_ids


def stored(desk: Site, run_id: str) -> Run:
    run = desk.store.get_run(run_id)
    assert run is not None
    return run


def test_every_lapsed_run_is_handed_over_once_and_without_a_query_each(site: MakeSite) -> None:
    desk = site(["Hello."])
    run_ids = lapsed(desk.store, 230)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert redispatch() == 230
    assert desk.runner.started == run_ids
    statements = [one["sql"] for one in queries if one["sql"].split(" ", 1)[0] in {"SELECT", "UPDATE"}]
    assert len(statements) == 7  # three batches found and marked, and a look that finds no more
    assert redispatch() == 0  # somebody has them in hand
    later(desk.store, 61 + 60)
    assert redispatch() == 230  # or had them


def test_a_run_that_gets_no_further_is_given_up_and_its_followers_end(site: MakeSite) -> None:
    desk = site(["Hello."])
    admitted = desk.send()
    store = desk.store
    for attempt in range(1, 7):
        later(store, attempt * 61)
        lease = store.claim_run(admitted.run_id, "poison", 60)
        assert lease is not None
        store.record_steps(lease, [], effect=Effect(position=5, name="llm:0"))
    store.append_frames(admitted.run_id, ['{"kind":"step-start"}\n', '{"kind":"text","text":"Hel"}\n'], attempt=6)
    assert stored(desk, admitted.run_id).recoveries == 5
    later(store, 7 * 61)
    assert recover() == 1
    run = stored(desk, admitted.run_id)
    assert (run.status, run.error_code, run.lease_owner) == ("failed", "run_failed", None)
    assert "got no further" in (run.error_message or "")
    assert [(row.step_key, row.tokens_source) for row in store.usage_of_run(run.id)] == [("llm:0#6.1", "estimated")]
    assert store.owner_of_active_run(run.id) is None  # the conversation is free again
    with pytest.raises(StreamFailed) as failure:
        asyncio.run(followed(run.id))
    assert failure.value.code == "run_failed"
    assert desk.runner.started == [run.id]  # by its admission, and never again
    assert desk.frames(run.id)[-1]["end"]["code"] == "run_failed"
    assert recover() == 0


def test_a_run_is_taken_up_as_often_as_allowed(site: MakeSite) -> None:
    desk = site(["Hello."])
    run_id = desk.send().run_id
    for attempt in range(1, 6):
        later(desk.store, attempt * 61)
        desk.store.claim_run(run_id, "unlucky", 60)
    later(desk.store, 6 * 61)
    assert stored(desk, run_id).recoveries == 4
    assert redispatch() == 1
    assert desk.drive(run_id).status == "completed"


def test_one_more_claim_than_allowed_fails_the_run_whoever_delivers_it(site: MakeSite) -> None:
    """A broker that delivers again and again goes round recovery."""
    desk = site(["Hello."])
    run_id = desk.send().run_id
    for attempt in range(1, 7):
        later(desk.store, attempt * 61)
        desk.store.claim_run(run_id, "poison", 60)
    later(desk.store, 7 * 61)
    run = desk.drive(run_id)
    assert (run.status, run.error_code, desk.provider.requests) == (
        "failed",
        "run_failed",
        type(desk.provider.requests)(maxlen=50),
    )


def test_a_run_with_a_live_worker_is_not_given_up(site: MakeSite) -> None:
    desk = site(["Hello."])
    run_id = desk.send().run_id
    desk.store.claim_run(run_id, "alive", 60)
    assert not give_up(stored(desk, run_id))
    assert stored(desk, run_id).status == "running"


def test_a_run_that_cannot_go_on_after_an_upgrade_is_failed_and_its_cut_call_counted(site: MakeSite) -> None:
    desk = site(["Hello."])
    run_id = desk.send().run_id
    lease = desk.store.claim_run(run_id, "of the newer release", 60)
    assert lease is not None
    desk.store.record_steps(
        lease, [Step(position=1, name="of:the:newer:release", payload=None)], effect=Effect(position=5, name="llm:0")
    )
    later(desk.store, 61)
    assert redispatch() == 1
    run = desk.drive(run_id)
    assert (run.status, run.error_code) == ("failed", "replay_diverged")
    assert [(row.step_key, row.tokens_source) for row in desk.store.usage_of_run(run_id)] == [("llm:0#1.1", "missing")]
    assert desk.frames(run_id)[-1]["end"]["code"] == "replay_diverged"


async def followed(run_id: str) -> list[str | None]:
    async with asyncio.timeout(10):
        return [frame.frame async for frame in follow(run_id)]


# ---- processes that are gone -----------------------------------------------------------------------------------------


def gone_process() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_starting_process_takes_over_from_dead_ones_of_its_host_at_once(site: MakeSite) -> None:
    desk = site(["Hello."] * 4)
    dead = f"{socket.gethostname()}:{gone_process()}:0a1b"
    elsewhere = f"another-host:{gone_process()}:0a1b"
    owners = [dead, elsewhere, owner_name(), this_process()]  # the third had our process id before us
    run_ids = [desk.send().run_id for _ in owners]
    for run_id, owner in zip(run_ids, owners, strict=True):
        desk.store.claim_run(run_id, owner, 60)
    queued = desk.send().run_id
    desk.runner.started.clear()
    assert take_over() == 3
    assert desk.runner.started == [run_ids[0], run_ids[2], queued]
    assert desk.drive(run_ids[0]).attempt == 2


def test_only_what_is_certain_counts_as_gone() -> None:
    host, me, parent = socket.gethostname(), os.getpid(), os.getppid()
    assert not is_gone(this_process())
    assert is_gone(f"{host}:{me}:another")
    assert is_gone(f"{host}:{gone_process()}:0a1b-17")
    assert is_gone(f"{host}:{parent}:0a1b-1")  # this id was another process's before the parent got it
    for owner in (
        f"{host}:{parent}:0a1b",
        f"elsewhere:{me}:0a1b",
        f"{host}:0:0a1b",
        "w1",
        "",
        f"{host}:x:y",
        "a:b:c:d",
    ):
        assert not is_gone(owner), owner


def test_a_killed_process_that_nobody_has_buried_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = f"{socket.gethostname()}:{process.pid}:0a1b"
    assert not is_gone(owner)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the table of processes
    assert is_gone(owner)
    process.communicate()


def test_a_fork_holds_leases_under_its_own_name() -> None:
    script = """
import os
from agent.flows.owners import is_gone, this_process
parent = this_process()
if os.fork() == 0:
    os._exit(int(this_process() == parent or is_gone(parent) or str(os.getpid()) not in this_process()))
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True)


# ---- streams that were left open -------------------------------------------------------------------------------------


@pytest.fixture
def told(site: MakeSite) -> tuple[Site, Run, list[dict[str, Any]]]:
    """A settled run and all that it told."""
    desk = site(["Hello there."])
    run = desk.turn()
    return desk, run, desk.frames(run.id)


def cut(desk: Site, run: Run, kept: int) -> None:
    """Take the last frames of a stream away, as a crash behind the settlement does."""
    rows = [row.frame for row in desk.store.read_frames(run.id, 0)][:kept]
    desk.store.remove_frames([run.id])
    desk.store.append_frames(run.id, rows)


def folded(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Frames with neighbouring texts put together."""
    whole: list[dict[str, Any]] = []
    for frame in frames:
        if frame.get("kind") == "text" and whole and whole[-1].get("kind") == "text":
            whole[-1] = {"kind": "text", "text": whole[-1]["text"] + frame["text"]}
        else:
            whole.append(frame)
    return whole


def test_a_stream_left_open_behind_the_settlement_is_told_to_its_end(
    told: tuple[Site, Run, list[dict[str, Any]]],
) -> None:
    desk, run, whole = told
    for kept in range(1, len(whole)):
        cut(desk, run, kept)
        later(desk.store, 5)
        recover()
        assert len(desk.frames(run.id)) == kept  # its worker may still be telling
        later(desk.store, 15)
        recover()
        recover()
        assert folded(desk.frames(run.id)) == folded(whole)


def test_a_stream_that_nobody_keeps_any_more_is_not_begun_again(told: tuple[Site, Run, list[dict[str, Any]]]) -> None:
    desk, run, _ = told
    desk.store.remove_frames([run.id])
    later(desk.store, 15)
    recover()
    assert not desk.store.has_frames(run.id)


def test_the_stream_of_a_failed_run_ends_with_its_error(site: MakeSite) -> None:
    desk = site(["", RuntimeError("a secret")])
    run = desk.turn()
    whole = desk.frames(run.id)
    assert whole[-1]["end"]["code"] == "model_no_output"
    cut(desk, run, len(whole) - 1)
    later(desk.store, 15)
    recover()
    assert desk.frames(run.id) == whole
    other = desk.turn()
    cut(desk, other, 1)
    later(desk.store, 30)
    recover()
    assert "secret" not in str(desk.frames(other.id)[-1]["end"])


def test_the_stream_of_a_cancelled_run_says_so(site: MakeSite) -> None:
    desk = site(["Hello."])
    run_id = desk.send().run_id
    assert cancel(ALICE, run_id)
    desk.store.remove_frames([run_id])
    desk.store.append_frames(run_id, ['{"kind":"step-start"}\n'])
    later(desk.store, 15)
    recover()
    assert desk.frames(run_id) == [{"kind": "step-start"}, {"kind": "cancelled"}, {"end": None}]
