"""B19: nothing runs but what a person approved, for this very call and as it was shown; all else waits."""

from __future__ import annotations

from typing import Any

import pytest

from agent.domain.actor import Actor, Owner
from agent.domain.approvals import ApprovalThread, Requirement
from agent.errors import AlreadyDecided, IsProposal, NotFound, RunNotActive
from agent.flows import approvals, threads
from agent.flows.cancel import cancel
from agent.flows.recovery import recover
from agent.models import ToolCall
from tests.flows.acting import Acting, calls_of, cancel_call, refund_call
from tests.flows.conftest import ALICE, Site


@pytest.fixture
def acting(site: Any) -> Acting:
    return Acting(site)


def waiting(desk: Site, *, times: int = 1) -> list[tuple[str, str]]:
    """So many runs that wait, each with its call."""
    runs = [desk.turn("Cancel it.") for _ in range(times)]
    assert {run.status for run in runs} == {"waiting"}
    return [(run.id, calls_of(desk, run.thread_id)[-1].id) for run in runs]


def test_a_run_that_is_taken_up_without_a_decision_waits_on(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    [(run_id, call_id)] = waiting(desk)
    for _ in range(3):
        desk.runner.start(run_id)  # a message that the broker delivers again
        assert desk.drive(run_id).status == "waiting"
        assert desk.store.wake_run(run_id)  # somebody said that there is something, and there is not
        assert desk.drive(run_id).status == "waiting"
    recover(queued_for=0)
    row = desk.store.get_tool_call(call_id)
    assert row is not None
    assert (acting.done, row.status, row.decision) == ([], "pending_approval", None)
    approvals.approve(ALICE, call_id)
    assert desk.drive(run_id).status == "completed"
    assert [done[:2] for done in acting.done] == [("cancel", 1043)]


def test_the_decision_about_one_run_is_none_about_another_with_the_same_call(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())  # the model gives each of its calls the same id
    (approved, its_call), (other, other_call), (rejected, bad_call) = waiting(desk, times=3)
    approvals.approve(ALICE, its_call)
    approvals.reject(ALICE, bad_call)
    assert desk.store.wake_run(other)
    ended = {run_id: desk.drive(run_id).status for run_id in (other, approved, rejected)}
    assert ended == {approved: "completed", other: "waiting", rejected: "completed"}
    assert acting.done == [("cancel", 1043, f"{approved}:{its_call}")]
    row = desk.store.get_tool_call(other_call)
    assert row is not None
    assert row.decision is None


def test_one_of_two_decisions_lets_one_of_two_run(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call(1, "a"), refund_call(2, "b"))
    [(run_id, first)] = waiting(desk)
    approvals.approve(ALICE, first)
    run = desk.drive(run_id)
    assert (run.status, [done[:2] for done in acting.done]) == ("waiting", [("cancel", 1)])
    assert desk.store.wake_run(run_id)
    assert desk.drive(run_id).status == "waiting"
    assert [done[:2] for done in acting.done] == [("cancel", 1)]
    approvals.reject(ALICE, calls_of(desk, run.thread_id)[1].id)
    assert desk.drive(run_id).status == "completed"
    assert [done[:2] for done in acting.done] == [("cancel", 1)]


class AsksAbout:
    """A policy that asks about these tools, which change."""

    def __init__(self, *names: str) -> None:
        self.names = set(names)

    def requirement_for(self, tool: Any, input: Any, actor: Actor, thread: ApprovalThread) -> Requirement:  # noqa: A002
        return Requirement(tool.name in self.names)

    def can_decide(self, actor: Actor, approver: str, scope: Owner) -> bool:
        return actor.same_as(scope)


@pytest.mark.parametrize("later", [("cancel", "refund"), ()], ids=["asked now", "asked no more"])
def test_a_tool_that_has_come_to_need_an_approval_is_asked_about(acting: Acting, later: tuple[str, ...]) -> None:
    """Two calls of one step, and the rule changes while the first of them waits: what waits goes on waiting."""
    acting.declare()
    policy = AsksAbout("cancel")
    desk = acting.site(cancel_call(1, "a"), refund_call(2, "b"), APPROVAL_POLICY=policy)
    [(run_id, first)] = waiting(desk)
    policy.names = set(later)
    assert desk.store.wake_run(run_id)
    assert (desk.drive(run_id).status, acting.done) == ("waiting", [])
    approvals.approve(ALICE, first)
    run = desk.drive(run_id)
    assert (run.status, [done[0] for done in acting.done]) == (
        ("waiting", ["cancel"]) if later else ("completed", ["cancel", "refund"])
    )


def test_arguments_that_were_changed_behind_the_approval_are_not_run(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    [(run_id, call_id)] = waiting(desk)
    approvals.approve(ALICE, call_id)
    ToolCall.objects.filter(pk=call_id).update(input={"number": 9})
    run = desk.drive(run_id)
    (row,) = calls_of(desk, run.thread_id)
    assert (run.status, row.status, acting.done) == ("completed", "failed", [])


@pytest.mark.parametrize("end", ["stopped", "deleted"])
def test_what_was_approved_too_late_is_not_done_by_anybody(acting: Acting, end: str) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    [(run_id, call_id)] = waiting(desk)
    run = desk.store.get_run(run_id)
    assert run is not None
    if end == "stopped":
        cancel(ALICE, run_id)
    else:
        threads.delete(ALICE, run.thread_id)
    with pytest.raises((RunNotActive, NotFound)):
        approvals.approve(ALICE, call_id)
    for number in range(2):
        desk.runner.start(run_id)
        assert desk.drive(run_id).status == "cancelled", number
    assert acting.done == []


def test_a_call_that_a_fork_carries_is_nobodys_to_approve(acting: Acting) -> None:
    """The copy of an open call is closed: approving the one that is still open runs it once, where it was asked."""
    acting.declare()
    desk = acting.site(cancel_call())
    [(run_id, call_id)] = waiting(desk)
    run = desk.store.get_run(run_id)
    assert run is not None
    fork = threads.fork(ALICE, run.thread_id, desk.messages(run.thread_id)[-1].id)
    (copy,) = calls_of(desk, fork.id)
    assert (copy.status, copy.decision, copy.id != call_id) == ("failed", None, True)
    with pytest.raises((AlreadyDecided, RunNotActive, IsProposal)):
        approvals.approve(ALICE, copy.id)
    assert desk.turn("And now?", thread_id=fork.id).status == "waiting"  # asked anew, as any call
    assert acting.done == []
    approvals.approve(ALICE, call_id)
    assert desk.drive(run_id).status == "completed"
    assert acting.done == [("cancel", 1043, f"{run_id}:{call_id}")]
