"""An action waits for a person, holds nobody meanwhile, and runs as it was approved: once, or not at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.actor import Actor
from agent.domain.approvals import ApprovalThread, Requirement
from agent.domain.commands import RunEnd
from agent.domain.runs import Run
from agent.domain.snapshots import ToolCall
from agent.errors import (
    AgentError,
    AlreadyDecided,
    ApprovalExpired,
    CardChanged,
    NotAllowed,
    NotFound,
    RunNotActive,
)
from agent.flows import approvals
from agent.flows.cancel import cancel
from agent.flows.recovery import recover
from agent.providers.scripted import call as call_of
from agent.registry import agent, completed, denied, ready, tool
from tests.flows.acting import LEAD, STRANGER, Acting, calls_of, cancel_call, frame_of, kinds, refund_call
from tests.flows.conftest import ALICE, Site


@pytest.fixture
def acting(site: Any) -> Acting:
    return Acting(site)


def parked(desk: Site, *, message: str = "Cancel it.") -> tuple[Run, ToolCall]:
    """A run that waits, and the call that it waits for."""
    run = desk.turn(message)
    assert run.status == "waiting", run.error_message
    return run, next(row for row in calls_of(desk, run.thread_id) if row.status == "pending_approval")


def woken(desk: Site, run: Run) -> Run:
    """The run after a worker took it up again, which a decision asked for."""
    assert desk.runner.started[-1] == run.id
    return desk.drive(run.id)


def test_a_run_that_waits_holds_its_thread_and_nobody_else(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    run, call = parked(desk)
    assert (run.lease_owner, run.lease_expires_at, run.settled_at) == (None, None, None)
    assert desk.store.active_run_for_thread(run.thread_id) == run.id
    assert (call.approver, call.expires_at, call.four_eyes, call.decision) == ("requester", None, False, None)
    assert call.confirmation == {"title": "Cancel order 1043", "verb": "Cancel", "detail": "For good."}
    assert not acting.done
    asked = frame_of(desk, run.id, "approval-requested")
    (card,) = desk.messages(run.thread_id)[-1].approvals or []
    assert asked == {
        "kind": "approval-requested",
        "id": call.id,
        "approver": "requester",
        "digest": card["digest"],
        "confirmation": call.confirmation,
    }
    assert kinds(desk, run.id)[-2:] == ["tool-input-available", "approval-requested"]
    assert recover(queued_for=0) == 0  # nobody is missing


def test_what_was_approved_runs_once_and_the_answer_goes_on(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    run, call = parked(desk)
    approvals.approve(ALICE, call.id, via="api")
    run = woken(desk, run)
    assert run.status == "completed"
    assert acting.done == [("cancel", 1043, f"{run.id}:{call.id}")]
    (row,) = calls_of(desk, run.thread_id)
    assert (row.status, row.decision, row.decided_via, row.executed_by_ref) == ("executed", "approved", "api", "alice")
    assert row.output == {"cancelled": 1043}
    asking, answer = desk.messages(run.thread_id)[1:]
    assert asking.tool_results == [{"id": call.id, "name": "cancel", "output": {"cancelled": 1043}}]
    assert [card["status"] for card in asking.approvals or ()] == ["approved"]
    assert answer.content == "Done."
    shown = ("approval-requested", "approval-settled", "tool-output", "step-finish", "end")
    assert kinds(desk, run.id, *shown) == [*shown[:3], "step-finish", "step-finish", "end"]
    settled = frame_of(desk, run.id, "approval-settled")
    decided = {"status": "approved", "approver": "requester", "decidedBy": "alice", "decidedVia": "api"}
    assert settled == {"kind": "approval-settled", "id": call.id, **decided}
    assert (run.retries, run.recoveries, run.attempt) == (0, 0, 2)
    assert [row.step_key for row in desk.store.usage_of_run(run.id)] == ["llm:0", "llm:1"]


def test_a_rejection_is_told_to_the_model_in_our_words_and_nothing_is_done(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    run, call = parked(desk)
    approvals.reject(ALICE, call.id, reason="Too late.")
    (row,) = calls_of(desk, run.thread_id)
    assert (row.status, row.decision, row.decision_reason) == ("rejected", "rejected", "Too late.")
    run = woken(desk, run)
    assert (run.status, acting.done) == ("completed", [])
    (result,) = desk.messages(run.thread_id)[1].tool_results or []
    assert (result["denied"], result["output"]["rejected"], result["output"]["reason"]) == (True, True, "Too late.")
    assert "A person decided" in result["output"]["note"]
    assert frame_of(desk, run.id, "tool-output-denied")["reason"] == "Too late."
    assert frame_of(desk, run.id, "approval-settled")["status"] == "rejected"


def test_a_rejection_without_a_reason_has_one_for_the_model(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    run, call = parked(desk)
    approvals.reject(ALICE, call.id)
    run = woken(desk, run)
    assert frame_of(desk, run.id, "tool-output-denied")["reason"] == "rejected by user"


def test_nobody_in_time_is_an_expiry_that_recovery_tells(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call(), APPROVAL_TTL_SECONDS=60)
    run, call = parked(desk)
    assert call.expires_at is not None
    assert frame_of(desk, run.id, "approval-requested")["expiresAt"]
    assert approvals.expire_due() == 0
    desk.store.clock = lambda: timezone.now() + timedelta(seconds=60)
    recover()
    (row,) = calls_of(desk, run.thread_id)
    assert (row.status, row.decision, row.decided_via) == ("expired", "expired", "expiry")
    run = woken(desk, run)
    assert (run.status, acting.done) == ("completed", [])
    (result,) = desk.messages(run.thread_id)[1].tool_results or []
    assert (result["expired"], result["output"]["reason"]) == (True, "approval expired")
    assert "Nobody answered in time" in result["output"]["note"]
    assert frame_of(desk, run.id, "tool-output-denied")["reason"] == "approval expired"


def test_whoever_decides_too_late_expires_the_card_and_wakes_the_run(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call(), APPROVAL_TTL_SECONDS=60)
    run, call = parked(desk)
    assert call.expires_at is not None
    at = call.expires_at
    desk.store.clock = lambda: at
    with pytest.raises(ApprovalExpired):
        approvals.approve(ALICE, call.id)
    assert woken(desk, run).status == "completed"
    handed_over = len(desk.runner.started)
    for decide in (approvals.approve, approvals.reject):
        with pytest.raises(ApprovalExpired):
            decide(ALICE, call.id)
    assert len(desk.runner.started) == handed_over
    assert not acting.done


def test_the_calls_of_a_step_are_asked_one_at_a_time_and_each_runs_once(acting: Acting) -> None:
    acting.declare()
    from_model = [cancel_call(1, "a"), refund_call(2, "b"), cancel_call(3, "c")]
    desk = acting.site(*from_model)
    run, first = parked(desk)
    assert len(desk.store.pending_approvals(10)) == 1
    approvals.approve(ALICE, first.id)
    run = woken(desk, run)
    assert (run.status, [one[:2] for one in acting.done]) == ("waiting", [("cancel", 1)])
    second = calls_of(desk, run.thread_id)[1]
    approvals.reject(ALICE, second.id)
    run = woken(desk, run)
    third = calls_of(desk, run.thread_id)[2]
    assert (run.status, third.status) == ("waiting", "pending_approval")
    approvals.approve(ALICE, third.id)
    run = woken(desk, run)
    assert run.status == "completed"
    assert [one[:2] for one in acting.done] == [("cancel", 1), ("cancel", 3)]
    assert [row.status for row in calls_of(desk, run.thread_id)] == ["executed", "rejected", "executed"]
    results = desk.messages(run.thread_id)[1].tool_results or []
    assert [result["id"] for result in results] == [row.id for row in calls_of(desk, run.thread_id)]
    cards = ("approval-requested", "approval-settled")
    assert kinds(desk, run.id, *cards) == [*cards] * 3


def test_a_read_before_an_approval_runs_once(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(call_of("look", "l", number=1), cancel_call())
    run, call = parked(desk)
    approvals.approve(ALICE, call.id)
    assert woken(desk, run).status == "completed"
    assert [one[0] for one in acting.done] == ["look", "cancel"]


def test_an_action_that_fails_is_an_outcome(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call(13))
    run, call = parked(desk)
    approvals.approve(ALICE, call.id)
    assert woken(desk, run).status == "completed"
    (row,) = calls_of(desk, run.thread_id)
    assert (row.status, row.decision) == ("failed", "approved")
    (card,) = desk.messages(run.thread_id)[1].approvals or []
    assert card["status"] == "approved"
    assert kinds(desk, run.id, "tool-output-error") == ["tool-output-error"]


def test_an_action_that_nobody_has_to_decide_runs_at_once(acting: Acting) -> None:
    acting.declare(requires_approval=False)
    desk = acting.site(cancel_call())
    run = desk.turn()
    (row,) = calls_of(desk, run.thread_id)
    assert (run.status, row.status, row.approver, row.decision) == ("completed", "auto_executed", None, None)
    assert not kinds(desk, run.id, "approval-requested", "approval-settled")
    assert not desk.messages(run.thread_id)[1].approvals


def refused(error: type[AgentError], actor: Actor, call: ToolCall, **fields: Any) -> None:
    for decide in (approvals.approve, approvals.reject):
        with pytest.raises(error):
            decide(actor, call.id, **fields)


def test_only_the_approver_decides_and_only_what_they_were_shown(acting: Acting) -> None:
    acting.declare(approver="lead")
    desk = acting.site(cancel_call())
    run, call = parked(desk)
    (card,) = desk.messages(run.thread_id)[1].approvals or []
    refused(NotAllowed, ALICE, call)
    refused(NotAllowed, STRANGER, call)
    refused(NotAllowed, Actor("lead", ("lead",), "acme"), call)
    refused(CardChanged, LEAD, call, digest="0" * 64)
    with pytest.raises(NotFound):
        approvals.approve(LEAD, "nobody")
    assert not desk.runner.started[1:]
    approvals.approve(LEAD, call.id, digest=card["digest"])
    assert woken(desk, run).status == "completed"


def test_the_first_decision_stands_and_the_same_again_changes_nothing(acting: Acting) -> None:
    acting.declare(approver="lead")
    desk = acting.site(cancel_call())
    run, call = parked(desk)
    approvals.approve(LEAD, call.id, via="api")
    decided = desk.store.get_tool_call(call.id)
    approvals.approve(Actor("other", ("lead",)), call.id)
    with pytest.raises(AlreadyDecided):
        approvals.reject(LEAD, call.id)
    assert desk.store.get_tool_call(call.id) == decided
    assert desk.runner.started == [run.id] * 2
    assert woken(desk, run).status == "completed"
    approvals.approve(LEAD, call.id)
    with pytest.raises(AlreadyDecided):
        approvals.reject(LEAD, call.id)
    assert len(acting.done) == 1


def test_a_cancelled_run_takes_its_card_along(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    run, call = parked(desk)
    assert cancel(ALICE, run.id)
    (row,) = calls_of(desk, run.thread_id)
    assert (row.status, row.decision) == ("failed", None)
    assert desk.store.active_run_for_thread(run.thread_id) is None
    assert kinds(desk, run.id)[-2:] == ["cancelled", "end"]
    refused(RunNotActive, ALICE, call)
    assert desk.turn("Again.").status == "waiting"


def test_a_card_that_a_dead_run_left_open_is_settled_by_who_touches_it(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    run, call = parked(desk)
    assert desk.store.record_run_end(run.id, RunEnd(status="failed", error_code="run_failed"))
    refused(RunNotActive, ALICE, call)
    (row,) = calls_of(desk, run.thread_id)
    assert (row.status, row.decision) == ("failed", None)


def test_four_eyes_are_not_the_requesters_whatever_else_they_hold(acting: Acting) -> None:
    acting.declare(approver="lead", four_eyes=True)
    desk = acting.site(cancel_call())
    both = Actor("alice", ("lead", "superuser"))
    run = desk.drive(desk.send("Cancel it.", actor=both).run_id)
    (call,) = calls_of(desk, run.thread_id)
    assert frame_of(desk, run.id, "approval-requested")["fourEyes"] is True
    refused(NotAllowed, both, call)
    assert desk.store.get_tool_call(call.id) == call
    approvals.approve(LEAD, call.id)
    assert woken(desk, run).status == "completed"


def test_a_remembered_approval_lets_the_next_call_pass_its_checks_alone(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(refund_call())
    run, call = parked(desk)
    approvals.approve(ALICE, call.id, remember=True)
    assert woken(desk, run).status == "completed"
    assert frame_of(desk, run.id, "approval-settled")["remember"] is True
    again = desk.turn("Again.", thread_id=run.thread_id)
    assert again.status == "completed"
    row = calls_of(desk, run.thread_id)[1]
    assert (row.status, row.decision, row.decided_via) == ("executed", "remembered", "remembered")
    assert acting.asked == ["prepare", "execute"] * 2
    assert frame_of(desk, again.id, "approval-settled")["decidedVia"] == "remembered"
    assert not kinds(desk, again.id, "approval-requested")
    assert desk.turn("In another conversation.").status == "waiting"


class Asks:
    """A policy that asks whom and when the test says."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.told: list[tuple[str, int, str, str]] = []

    def requirement_for(self, tool: Any, input: Any, actor: Actor, thread: ApprovalThread) -> Requirement:  # noqa: A002
        self.told.append((tool.name, input.number, actor.ref, thread.owner.ref))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    def can_decide(self, actor: Actor, approver: str, scope: Any) -> bool:
        return actor.ref == approver


def test_memory_passes_only_the_same_approver_and_never_four_eyes(acting: Acting) -> None:
    acting.declare()
    lead, boss = Requirement(True, "lead"), Requirement(True, "boss")
    desk = acting.site(cancel_call(), APPROVAL_POLICY=Asks(lead, boss, Requirement(True, "lead", four_eyes=True)))
    run, call = parked(desk)
    approvals.approve(LEAD, call.id, remember=True)
    woken(desk, run)
    for _ in range(2):
        asked = desk.turn("Again.", thread_id=run.thread_id)
        assert asked.status == "waiting"
        assert cancel(ALICE, asked.id)


def test_a_policy_is_asked_once_with_the_input_and_what_it_says_holds(acting: Acting) -> None:
    acting.declare()
    policy = Asks(Requirement(True, "lead", timedelta(minutes=5)))
    desk = acting.site(cancel_call(), APPROVAL_POLICY=policy)
    run, call = parked(desk)
    assert policy.told == [("cancel", 1043, "alice", "alice")]
    assert call.approver == "lead"
    refused(NotAllowed, ALICE, call)
    approvals.approve(LEAD, call.id)
    assert woken(desk, run).status == "completed"
    assert len(policy.told) == 1


@pytest.mark.parametrize("answer", [RuntimeError("down"), None, True, "requester"])
def test_a_policy_that_cannot_say_fails_the_call_and_nothing_runs(acting: Acting, answer: object) -> None:
    acting.declare()
    desk = acting.site(cancel_call(), APPROVAL_POLICY=Asks(answer))
    run = desk.turn()
    (row,) = calls_of(desk, run.thread_id)
    assert (run.status, row.status, row.approver, acting.done) == ("completed", "failed", None, [])
    assert kinds(desk, run.id, "approval-requested", "tool-output-error") == ["tool-output-error"]


def test_a_preflight_that_denies_asks_nobody(acting: Acting) -> None:
    acting.preflight = lambda number, phase: denied(f"Order {number} is on its way.")
    acting.declare()
    desk = acting.site(refund_call())
    run = desk.turn()
    (row,) = calls_of(desk, run.thread_id)
    assert (run.status, row.status, row.error) == ("completed", "failed", "Order 1042 is on its way.")
    assert (acting.asked, acting.done) == (["prepare"], [])
    assert frame_of(desk, run.id, "tool-output-denied")["reason"] == "Order 1042 is on its way."
    (result,) = desk.messages(run.thread_id)[1].tool_results or []
    assert (result["denied"], result["output"]["reason"]) == (True, "Order 1042 is on its way.")
    assert not kinds(desk, run.id, "approval-requested")


def test_a_preflight_that_has_nothing_left_to_do_settles_the_call(acting: Acting) -> None:
    acting.preflight = lambda number, phase: completed({"refunded": "before"})
    acting.declare()
    desk = acting.site(refund_call())
    run = desk.turn()
    (row,) = calls_of(desk, run.thread_id)
    assert (run.status, row.status, row.output) == ("completed", "auto_executed", {"refunded": "before"})
    assert frame_of(desk, run.id, "tool-output")["output"] == {"refunded": "before"}
    assert (acting.asked, acting.done) == (["prepare"], [])


def test_a_preflight_may_say_what_the_card_shows(acting: Acting) -> None:
    acting.preflight = lambda number, phase: ready({"title": "Refund {number}?", "verb": "Pay"})
    acting.declare()
    _, call = parked(acting.site(refund_call()))
    assert call.confirmation == {"title": "Refund {number}?", "verb": "Pay"}


def test_a_tool_without_a_confirmation_is_shown_by_its_name(acting: Acting) -> None:
    acting.declare()
    _, call = parked(acting.site(refund_call()))
    assert call.confirmation == {"title": "Refund", "verb": "Refund"}


@pytest.mark.parametrize(
    ("late", "status", "kind"),
    [
        (denied("It left meanwhile."), "failed", "tool-output-denied"),
        (completed({"refunded": "meanwhile"}), "executed", "tool-output"),
        ("yes", "failed", "tool-output-error"),
    ],
)
def test_the_preflight_is_asked_again_right_before_the_action(
    acting: Acting,
    late: Any,
    status: str,
    kind: str,
) -> None:
    acting.preflight = lambda number, phase: ready() if phase == "prepare" else late
    acting.declare()
    desk = acting.site(refund_call())
    run, call = parked(desk)
    approvals.approve(ALICE, call.id)
    run = woken(desk, run)
    (row,) = calls_of(desk, run.thread_id)
    assert (run.status, row.status, row.decision) == ("completed", status, "approved")
    assert (acting.asked, acting.done) == (["prepare", "execute"], [])
    assert kinds(desk, run.id, "tool-output", "tool-output-error", "tool-output-denied") == [kind]


def test_a_tool_that_closed_while_it_waited_is_not_run(acting: Acting) -> None:
    open_for = ["alice"]
    acting.declare(can_use=lambda actor: actor.ref in open_for)
    desk = acting.site(cancel_call())
    run, call = parked(desk)
    approvals.approve(ALICE, call.id)
    open_for.clear()
    run = woken(desk, run)
    (row,) = calls_of(desk, run.thread_id)
    assert (run.status, row.status, acting.done) == ("completed", "failed", [])


def test_arguments_that_mean_something_else_after_an_update_are_not_run(acting: Acting) -> None:
    acting.declare()
    desk = acting.site(cancel_call())
    run, call = parked(desk)
    approvals.approve(ALICE, call.id)
    desk.registry.__init__()  # type: ignore[misc]

    @tool(name="cancel", kind="action")
    def changed(number: str | int, fast: bool = True) -> None:
        """Cancel an order."""
        acting.done.append(("changed", 0, ""))

    agent(name="desk", prompt="p", tools=["cancel"])(type("Desk", (), {}))
    run = woken(desk, run)
    (row,) = calls_of(desk, run.thread_id)
    assert (run.status, row.status, acting.done) == ("completed", "failed", [])
    assert "approved" in str(row.error)
