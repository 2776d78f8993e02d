"""People, deadlines and workers at once: one decision, one execution, and nobody is left waiting."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.actor import Actor
from agent.errors import AgentError
from agent.flows import approvals
from agent.flows.cancel import cancel
from agent.runners.inline import InlineRunner
from tests.flows.acting import Acting, calls_of, cancel_call
from tests.flows.conftest import ALICE, Site
from tests.store.subjects import orm_subject

DECIDERS = 8
ROUNDS = 12
DEADLINE = 20


@pytest.fixture
def acting(site: Any) -> Acting:
    return Acting(site)


def code(decide: Callable[[], object]) -> str:
    """How a decision was answered."""
    try:
        decide()
    except AgentError as error:
        return error.code
    return "ok"


def at_once(*decisions: Callable[[], object]) -> Sequence[str]:
    return orm_subject().parallel([partial(code, decide) for decide in decisions])


def leads(decide: Callable[..., object], call_id: str, count: int) -> list[Callable[[], object]]:
    return [partial(decide, Actor(f"lead-{number}", ("lead",)), call_id) for number in range(count)]


def waiting(desk: Site) -> tuple[str, str, str]:
    run = desk.turn("Cancel it.")
    assert run.status == "waiting"
    (call,) = calls_of(desk, run.thread_id)
    return run.id, run.thread_id, call.id


def card_of(desk: Site, run_id: str) -> str:
    """The call that the run asks about, as soon as it can be read."""
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        for each in desk.store.pending_approvals(9):
            if each.tool_call.run_id == run_id:
                return each.tool_call.id
    raise TimeoutError(run_id)


def approve_at_once(desk: Site, run_id: str) -> None:
    approvals.approve(ALICE, card_of(desk, run_id))


def drive(desk: Site, run_id: str) -> None:
    desk.drive(run_id)


def test_of_many_who_approve_each_is_right_and_it_runs_once(acting: Acting) -> None:
    acting.declare(approver="lead")
    desk = acting.site(cancel_call())
    run_id, _, call_id = waiting(desk)
    assert at_once(*leads(approvals.approve, call_id, DECIDERS)) == ["ok"] * DECIDERS
    assert desk.runner.started == [run_id] * 2  # sent, and woken once
    assert desk.drive(run_id).status == "completed"
    assert len(acting.done) == 1


def test_of_many_who_disagree_one_decision_stands(acting: Acting) -> None:
    acting.declare(approver="lead")
    desk = acting.site(cancel_call())
    run_id, thread_id, call_id = waiting(desk)
    half = DECIDERS // 2
    answers = at_once(*leads(approvals.approve, call_id, half), *leads(approvals.reject, call_id, half))
    assert Counter(answers) == {"ok": half, "already_decided": half}
    assert len({*answers[:half]}) == len({*answers[half:]}) == 1
    assert desk.runner.started == [run_id] * 2
    assert desk.drive(run_id).status == "completed"
    (row,) = calls_of(desk, thread_id)
    assert row.decision == ("approved" if answers[0] == "ok" else "rejected")
    assert len(acting.done) == (row.decision == "approved")


def test_at_the_deadline_everybody_is_too_late(acting: Acting) -> None:
    acting.declare(approver="lead")
    desk = acting.site(cancel_call(), APPROVAL_TTL_SECONDS=60)
    run_id, thread_id, call_id = waiting(desk)
    desk.store.clock = lambda: timezone.now() + timedelta(seconds=60)
    answers = at_once(*leads(approvals.approve, call_id, 4), approvals.expire_due, approvals.expire_due)
    assert answers == [*["approval_expired"] * 4, "ok", "ok"]
    assert desk.runner.started == [run_id] * 2
    assert desk.drive(run_id).status == "completed"
    (row,) = calls_of(desk, thread_id)
    assert (row.status, row.decided_via, acting.done) == ("expired", "expiry", [])


def test_a_decision_against_a_stop_leaves_nobody_waiting(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    for _ in range(ROUNDS):
        acting.done.clear()
        run_id, thread_id, call_id = waiting(desk)
        approved, _ = at_once(partial(approvals.approve, ALICE, call_id), partial(cancel, ALICE, run_id))
        assert approved in {"ok", "run_not_active"}
        run, (row,) = desk.drive(run_id), calls_of(desk, thread_id)
        assert (run.status, row.status, acting.done) == ("cancelled", "failed", [])
        assert desk.store.active_run_for_thread(thread_id) is None


def test_a_decision_against_a_run_that_parks_is_never_missed(acting: Acting) -> None:
    """The person is faster than the worker that puts the run aside: the card is decided as soon as it can be read."""
    acting.declare()
    desk = acting.site(cancel_call())
    for _ in range(ROUNDS):
        acting.done.clear()
        run_id = desk.send("Cancel it.").run_id
        orm_subject().parallel([partial(approve_at_once, desk, run_id), partial(drive, desk, run_id)])
        run = desk.store.get_run(run_id)
        assert run is not None
        if run.status == "queued":  # it had parked: the decision handed it over again
            assert desk.runner.started[-1] == run_id
            run = desk.drive(run_id)
        assert run.status == "completed"
        assert len(acting.done) == 1


def test_the_serving_process_that_parks_a_run_takes_it_up_again_whenever_it_is_decided(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    runner = InlineRunner()
    try:
        for _ in range(ROUNDS):
            run_id = desk.send("Cancel it.").run_id
            runner.start(run_id)
            approvals.approve(ALICE, card_of(desk, run_id))
            runner.start(run_id)
            assert runner.wait(20)
            run = desk.store.get_run(run_id)
            assert run is not None
            assert run.status == "completed"
    finally:
        runner.stop(1)
    assert len(acting.done) == ROUNDS
