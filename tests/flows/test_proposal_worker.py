"""The worker of a serving process: woken by the commit of an approval, several at a time, and it ends its work."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management import call_command

from agent.flows import dispatch, proposals
from agent.models import ActionProposal
from agent.runners import proposals as worker
from agent.runners.inline import InlineRunner
from tests.flows.conftest import Site
from tests.flows.proposing import LEAD, SETTINGS, Desk, declare, scripted

PATIENCE = 20.0


@contextmanager
def serving() -> Iterator[None]:
    """This process serves, and has its worker."""
    runner = InlineRunner()
    before = dispatch.use(runner)
    worker.start()
    try:
        yield
    finally:
        assert worker.stop()
        dispatch.use(before)
        runner.stop(1)


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "nothing came of it"
        threading.Event().wait(0.005)


def status_of(made: Desk, proposal_id: str) -> str:
    proposal = made.site.store.find_proposal(proposal_id)
    assert proposal is not None
    return "none" if proposal.execution is None else proposal.execution.status.value


@pytest.fixture
def desk(site: Callable[..., Site]) -> Callable[..., Desk]:
    def make(**settings: Any) -> Desk:
        made = Desk(site(scripted, **{**SETTINGS, **settings}))
        declare(made)
        return made

    return make


def test_the_commit_of_an_approval_wakes_the_worker(desk: Callable[..., Desk]) -> None:
    made = desk()
    run, proposal = made.asked()
    with serving():
        proposals.approve(LEAD, proposal.id)
        wait_for(lambda: status_of(made, proposal.id) == "succeeded")
    assert (len(made.refunds), len(made.told(run))) == (1, 1)


def test_a_process_that_only_serves_carries_nothing_out(desk: Callable[..., Desk]) -> None:
    made = desk(EMBEDDED_WORKER=False)
    _, proposal = made.asked()
    runner = InlineRunner()
    before = dispatch.use(runner)
    try:
        proposals.approve(LEAD, proposal.id)
        assert status_of(made, proposal.id) == "queued"
        assert not any(thread.name == "agent-proposals" for thread in threading.enumerate())
    finally:
        dispatch.use(before)
        runner.stop(1)


def test_stopping_waits_for_the_work_in_hand(desk: Callable[..., Desk]) -> None:
    made = desk()
    _, proposal = made.asked()
    made.holds = threading.Event()
    with serving():
        proposals.approve(LEAD, proposal.id)
        wait_for(lambda: bool(made.seen))
        threading.Timer(0.1, made.holds.set).start()
    assert status_of(made, proposal.id) == "succeeded"


def test_a_long_execution_keeps_its_lease(desk: Callable[..., Desk]) -> None:
    made = desk(PROPOSAL_LEASE_SECONDS=1)
    _, proposal = made.asked()
    made.holds = threading.Event()
    with serving():
        proposals.approve(LEAD, proposal.id)
        wait_for(lambda: bool(made.seen))
        first = made.again(proposal).execution
        assert first is not None
        assert first.lease is not None
        until = first.lease.expires_at

        def renewed() -> bool:
            now = made.again(proposal).execution
            return now is not None and now.lease is not None and now.lease.expires_at > until + 1000

        wait_for(renewed)
        made.holds.set()
        wait_for(lambda: status_of(made, proposal.id) == "succeeded")
    assert len(made.seen) == 1


def test_several_are_carried_out_at_once(desk: Callable[..., Desk]) -> None:
    made = desk(PROPOSAL_CONCURRENCY=3)
    run = made.site.turn("refund order 1 and order 2 and order 3")
    made.holds = threading.Event()
    with serving():
        for each in proposals.page(run.actor, run.thread_id).items:
            proposals.approve(LEAD, each.id)
        wait_for(lambda: len(made.seen) == 3)
        made.holds.set()
    assert len(made.told(run)) == 3


def test_a_proposal_without_an_index_is_seen_once_it_was_filled(desk: Callable[..., Desk]) -> None:
    made = desk()
    _, proposal = made.asked()
    proposals.approve(LEAD, proposal.id)
    rows, whole = ActionProposal.objects.all(), ActionProposal.objects.values().get()
    rows.update(discovery_index_version=0, execution_status=None, tool_name="", proposal_expires_at_ms=7)
    assert (made.work(), made.refunds) == (0, [])
    out = io.StringIO()
    for _ in range(2):
        call_command("agent_backfill_proposals", "--batch", "1", stdout=out)
    assert out.getvalue() == "1 proposals indexed.\n0 proposals indexed.\n"
    assert rows.values().get() == {**whole, "version": whole["version"] + 1}
    assert (made.work(), len(made.refunds)) == (1, 1)
