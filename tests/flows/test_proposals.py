"""An action that becomes a proposal: the turn ends, a person decides, a worker carries it out, the thread is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from agent.conf import written_settings
from agent.domain.actor import Actor
from agent.domain.proposals import Answer
from agent.errors import CardChanged, IsProposal, NotAllowed, NotFound, ToolError
from agent.flows import approvals, execution, outcomes, proposals
from agent.registry import denied, ready, registry
from agent.store import get_store
from tests.flows.conftest import ALICE, Site
from tests.flows.proposing import LEAD, SETTINGS, Desk, declare, run_async, scripted

MakeDesk = Callable[..., Desk]


@pytest.fixture
def desk(site: Callable[..., Site]) -> MakeDesk:
    def make(settings: dict[str, Any] | None = None, **options: Any) -> Desk:
        made = Desk(site(scripted, **{**SETTINGS, **(settings or {})}))
        declare(made, **options)
        return made

    return make


def test_the_turn_ends_with_a_receipt_and_the_chat_is_free(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked()
    assert run.status == "completed"
    assert made.site.store.active_run_for_thread(run.thread_id) is None
    [_, said] = made.site.messages(run.thread_id)
    receipt = {"proposalId": proposal.id, "status": "pending", "executed": False}
    assert said.tool_results == [{"id": proposal.asked.origin_tool_call_id, "name": "refund_order", "output": receipt}]
    assert [step.name.partition(":")[0] for step in made.site.steps(run.id)][-4:] == ["persist"] * 4
    assert sum(step.name.startswith("llm:") for step in made.site.steps(run.id)) == 1  # nobody asks the model again
    assert not made.refunds


def test_the_proposal_says_everything_that_was_asked(desk: MakeDesk) -> None:
    run, proposal = desk(on_lost="hold").asked(page_context={"page": 7})
    asked = proposal.asked
    assert (asked.input, asked.preparation_input) == ({"order": 1042, "cents": 500}, {"order": "1042", "cents": 500})
    assert asked.idempotency_key == f"{run.id}:{asked.origin_tool_call_id}"
    assert (asked.approver, asked.on_lost, asked.expires_at) == ("role:lead", "hold", None)
    assert asked.execution_context == {"requestId": run.id, "agentName": "desk", "pageContext": {"page": 7}}
    call = desk_call(proposal.asked.origin_tool_call_id)
    assert (call.status, call.proposal_id) == ("proposed", proposal.id)


def desk_call(call_id: str) -> Any:
    return get_store().get_tool_call(call_id)


def test_the_card_in_the_stream_names_the_proposal_and_its_digest(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked()
    [card] = [frame for frame in made.site.frames(run.id) if frame.get("kind") == "approval-requested"]
    assert card["target"] == {"kind": "proposal", "proposalId": proposal.id}
    assert card["digest"] == proposal.digest


def test_an_approved_one_is_carried_out_once_and_the_thread_is_told(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked()
    assert proposals.approve(LEAD, proposal.id, digest=proposal.digest).applied
    assert made.site.runner.executed == [proposal.id]
    assert made.work() == 1
    assert made.refunds == [(proposal.asked.idempotency_key, 1042)]
    assert made.seen[0].actor == Actor("alice", ("today",))  # roles are today's
    [told] = made.told(run)
    assert told == 'Refunded.\n\nCompleted: Refund order. Result: {"order": 1042, "cents": 500}'
    done = made.again(proposal)
    assert done.delivery is not None
    assert done.delivery.status == "delivered"
    assert made.work() == 0
    assert [proposals.approve(LEAD, proposal.id).status for _ in range(2)] == ["unchanged"] * 2


@pytest.mark.parametrize("times", [2, 5])
def test_a_broker_that_delivers_again_changes_nothing(desk: MakeDesk, times: int) -> None:
    made = desk()
    _, proposal = made.asked()
    assert not run_async(execution.execute, proposal.id)  # before the decision: a lie of the broker
    proposals.approve(LEAD, proposal.id)
    assert [run_async(execution.execute, proposal.id) for _ in range(times)] == [True, *[False] * (times - 1)]
    assert len(made.seen) == 1


def test_a_message_that_never_came_is_found_by_the_sweep(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked()
    proposals.approve(LEAD, proposal.id)
    assert run_async(execution.sweep) == 1
    assert (len(made.refunds), len(made.told(run))) == (1, 1)


def test_a_rejected_one_is_told_with_the_reason_and_nothing_runs(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked()
    assert proposals.reject(LEAD, proposal.id, reason="Too much").applied
    assert made.told(run) == ["Rejected: Refund order was not carried out. Reason: Too much"]
    assert proposals.approve(LEAD, proposal.id).status == "conflict"
    assert made.work() == 0
    assert not made.refunds


def test_only_the_approver_decides_and_only_the_card_that_was_shown(desk: MakeDesk) -> None:
    _, proposal = desk().asked()
    for nobody in (ALICE, Actor("lead", ("lead",), "elsewhere"), Actor("bo")):
        with pytest.raises(NotAllowed):
            proposals.approve(nobody, proposal.id)
    with pytest.raises(CardChanged):
        proposals.approve(LEAD, proposal.id, digest="0" * 64)
    with pytest.raises(NotFound):
        proposals.approve(LEAD, "proposal-nobody")
    with pytest.raises(IsProposal):
        approvals.approve(LEAD, proposal.asked.origin_tool_call_id)


def test_under_four_eyes_the_requester_does_not_decide_even_with_the_role(desk: MakeDesk) -> None:
    made = desk(four_eyes=True)
    lead = Actor("alice", ("lead",))
    _, proposal = made.asked()
    with pytest.raises(NotAllowed):
        proposals.approve(lead, proposal.id)
    assert proposals.approve(LEAD, proposal.id).applied


def test_too_late_is_too_late_and_the_thread_is_told(desk: MakeDesk) -> None:
    made = desk({"APPROVAL_TTL_SECONDS": 60})
    run, proposal = made.asked()
    made.site.store.clock = later(made, seconds=61)
    assert proposals.approve(LEAD, proposal.id).status == Answer.EXPIRED
    assert made.told(run) == ["Expired: nobody approved Refund order in time, and it was not carried out."]
    assert made.work() == 0


def later(made: Desk, *, seconds: float) -> Callable[[], Any]:
    now = made.site.store.clock() + timedelta(seconds=seconds)
    return lambda: now


def test_what_nobody_decides_is_expired_by_the_sweep(desk: MakeDesk) -> None:
    made = desk({"APPROVAL_TTL_SECONDS": 60})
    run, _ = made.asked()
    assert proposals.expire_due() == 0
    made.site.store.clock = later(made, seconds=61)
    assert run_async(execution.sweep) == 2  # expired, and told
    assert len(made.told(run)) == 1


@pytest.mark.parametrize("change", ["requester", "tool", "agent", "role", "schema", "preflight", "error"])
def test_what_cannot_run_today_fails_with_a_sentence_and_does_nothing(desk: MakeDesk, change: str) -> None:
    preflight = {"answer": ready()}
    options: dict[str, Any] = {"preflight": lambda given, ctx, phase: preflight["answer"]}
    made = desk(**options)
    actor = Actor("gone") if change == "requester" else ALICE
    run, proposal = made.asked(actor=actor)
    proposals.approve(LEAD, proposal.id)
    if change == "preflight":
        preflight["answer"] = denied("The order was refunded elsewhere.")
    if change in {"tool", "agent"}:
        getattr(registry, f"_{change}s").clear()
    if change in {"role", "schema"}:
        registry._tools.clear()
        registry._agents.clear()
        declare_changed(made, change)
    if change == "error":
        made.fails_with = KeyError("order")
    made.work()
    done = made.again(proposal).execution
    assert done is not None
    assert done.status == "failed"
    assert done.error
    assert not made.refunds
    [told] = made.told(run)
    assert told.startswith("Failed: Refund order.")
    assert done.error in told
    assert made.work() == 0  # a failure is not tried again


def declare_changed(made: Desk, change: str) -> None:
    if change == "role":
        declare(made, roles=("boss",))
        return
    declare(made, cents_type=float)


def test_outcomes_wait_for_the_run_that_holds_the_thread_and_come_at_its_end(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked()
    proposals.approve(LEAD, proposal.id)
    second = made.site.send("refund order 7", thread_id=run.thread_id)
    made.work()
    assert made.told(run) == []
    assert outcomes.admit_due() == 0
    made.site.drive(second.run_id)
    assert len(made.told(run)) == 1
    assert outcomes.admit_due() == 0


def test_the_outcome_of_a_deleted_conversation_is_dropped_and_its_record_stays(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked()
    proposals.approve(LEAD, proposal.id)
    made.site.store.soft_delete_thread(run.thread_id)
    made.work()
    outcomes.admit_due()
    done = made.again(proposal)
    assert made.refunds
    assert done.delivery is not None
    assert done.delivery.status == "discarded"


def test_a_newer_request_replaces_the_pending_one(desk: MakeDesk) -> None:
    made = desk(replacement_key=lambda given: str(given.order))
    run, first = made.asked()
    _, second = made.asked(thread_id=run.thread_id)
    assert made.again(first).superseded_by == second.id
    assert made.told(run) == []  # it is listed, and posts nothing
    assert proposals.approve(LEAD, first.id).status == "conflict"
    proposals.approve(LEAD, second.id)
    third = made.site.turn("refund order 1042", thread_id=run.thread_id)
    [result] = made.site.messages(run.thread_id)[-1].tool_results or []
    assert "under way" in result["error"]
    assert third.status == "completed"


def test_every_call_of_the_step_is_handled_before_the_turn_ends(desk: MakeDesk) -> None:
    made = desk()
    run = made.site.turn("refund order 1 and order 2")
    found = proposals.page(ALICE, run.thread_id).items
    assert sorted(one.asked.input["order"] for one in found) == [1, 2]
    assert run.status == "completed"


def test_a_remembered_approval_counts_once_it_was_executed(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked()
    proposals.approve(LEAD, proposal.id, remember=True)
    assert made.site.store.remembered_approvals(run.thread_id) == set()
    made.work()
    assert made.site.store.remembered_approvals(run.thread_id) == {"refund_order"}


def test_a_conversation_shows_the_cards_as_they_are_after_a_reload(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked()

    def card() -> dict[str, Any]:
        [[only]] = [message.approvals for message in made.site.messages(run.thread_id) if message.approvals]
        return only

    assert (card()["status"], card()["digest"]) == ("pending", proposal.digest)
    proposals.approve(LEAD, proposal.id)
    made.work()
    assert (card()["status"], card()["decidedBy"], card()["execution"]) == ("approved", "lead", "succeeded")


def test_strangers_see_nothing_and_approvers_only_what_they_may_decide(desk: MakeDesk) -> None:
    run, proposal = desk().asked()
    assert [one.id for one in proposals.page(LEAD, run.thread_id).items] == [proposal.id]
    with pytest.raises(NotAllowed):
        proposals.page(Actor("bo"), run.thread_id)
    with pytest.raises(NotFound):
        proposals.page(ALICE, "nowhere")


def test_the_mode_is_recorded_and_a_later_setting_does_not_change_it(desk: MakeDesk) -> None:
    made = desk({"ACTION_APPROVAL_MODE": "independent"}, approval_mode=None)
    sent = made.site.send("refund order 1042")
    with override_settings(AGENT={**written_settings(), "ACTION_APPROVAL_MODE": "independent"}):
        run = made.site.drive(sent.run_id)
    [load] = [step.payload for step in made.site.steps(run.id) if step.name == "load:thread"]
    persist = [json.loads(json.dumps(step.payload)) for step in made.site.steps(run.id) if "toolcall" in step.name]
    assert load["approvalMode"] == "independent"
    assert [(each["mode"], each["branch"]) for each in persist] == [("independent", "proposed")]


def test_a_refusal_of_the_tool_itself_is_told_in_its_own_words(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked("refund order 13")
    proposals.approve(LEAD, proposal.id)
    made.fails_with = ToolError("Order 13 is unlucky.")
    made.work()
    assert made.told(run) == ["Failed: Refund order. Order 13 is unlucky."]
