"""B62: our hand-overs beside what a host does at the same commit; whoever raises, what was stored is carried out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from agent.flows import approvals, dispatch
from agent.flows.recovery import recover
from tests.flows.acting import Acting, calls_of, cancel_call
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]


def breaking(told: list[str]) -> None:
    told.append("host")
    raise RuntimeError("the host's own")


def beside(callback: Callable[[], object], work: Callable[[], object]) -> None:
    """What a view of the host may do: its own callback first, ours in the same transaction."""
    with transaction.atomic():
        transaction.on_commit(callback)
        work()


def test_a_host_whose_callback_raises_before_ours_loses_no_turn(site: MakeSite) -> None:
    """Django calls none of the others then: the row waits, and recovery finds it."""
    desk, told = site(["Hi."]), list[str]()
    sent: list[str] = []
    with pytest.raises(RuntimeError, match="the host's own"):
        beside(partial(breaking, told), lambda: sent.append(desk.send().run_id))
    assert (told, desk.runner.started) == (["host"], [])
    assert recover(queued_for=0) == 1
    assert desk.runner.started == sent
    assert desk.drive(sent[0]).status == "completed"


def test_a_decision_beside_such_a_callback_is_carried_out_too(site: MakeSite) -> None:
    acting = Acting(site)
    acting.declare()
    desk = acting.site(cancel_call())
    run = desk.turn("Cancel it.")
    (call,) = calls_of(desk, run.thread_id)
    handed_over = len(desk.runner.started)
    with pytest.raises(RuntimeError):
        beside(partial(breaking, []), partial(approvals.approve, run.actor, call.id))
    assert len(desk.runner.started) == handed_over
    assert recover(queued_for=0) == 1
    assert desk.drive(run.id).status == "completed"
    assert [done[:2] for done in acting.done] == [("cancel", 1043)]


class Refusing:
    """A runner that takes nothing."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def refuse(*_: object) -> Any:
            raise ConnectionError("no broker")

        return refuse


def test_a_hand_over_that_fails_stops_nothing_that_the_host_does(
    site: MakeSite, caplog: pytest.LogCaptureFixture
) -> None:
    desk, told = site(["Hi."]), list[str]()
    before = dispatch.use(Refusing())
    try:
        with caplog.at_level(logging.ERROR), transaction.atomic():
            transaction.on_commit(partial(told.append, "before"))
            run_id = desk.send().run_id
            transaction.on_commit(partial(told.append, "after"))
    finally:
        dispatch.use(before)
    assert told == ["before", "after"]
    assert f"run {run_id} could not be handed over" in caplog.text
    assert recover(queued_for=0) == 1
    assert desk.drive(run_id).status == "completed"


def taken_back(desk: Site) -> None:
    with transaction.atomic():
        desk.send()
        breaking([])


def test_each_of_several_sends_of_one_transaction_is_handed_over_by_its_own_id(site: MakeSite) -> None:
    desk = site(["Hi."] * 5)
    with transaction.atomic():
        sent = [desk.send().run_id for _ in range(4)]
        with pytest.raises(RuntimeError):
            taken_back(desk)
        assert desk.runner.started == []
    assert desk.runner.started == sent
    assert [desk.drive(run_id).status for run_id in sent] == ["completed"] * 4
    assert recover(queued_for=0) == 0
