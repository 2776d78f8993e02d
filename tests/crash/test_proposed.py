"""The worker of a proposal is killed anywhere: the effects that a witness counts are what the record says."""

from __future__ import annotations

import pytest

from agent.domain.proposals import Proposal
from agent.flows import proposals
from agent.models import Message, Run
from agent.store import get_store
from tests.crash.conftest import ALICE, Desk
from tests.crash.ending import ended, frames

RETRIED = [  # where it died, how often the tool began its effect in the end, and how often it was claimed
    ("proposal:claiming", 1, 1),
    ("proposal:claimed", 1, 2),
    ("tool:refund:begin", 1, 2),
    ("tool:refund:end", 2, 2),
    ("proposal:settling", 2, 2),
    ("proposal:unrecorded", 2, 2),
    ("proposal:admitting", 2, 2),
    ("proposal:settled", 1, 1),
    ("proposal:admitted", 1, 1),
]
HELD = [("proposal:claimed", 0), ("tool:transfer:begin", 0), ("tool:transfer:end", 1), ("proposal:unrecorded", 1)]


def approved(desk: Desk, agent: str) -> Proposal:
    """A turn whose action became a proposal, which a person has approved in a process that lives."""
    run_id = desk.send("Move 7.", agent=agent)
    assert desk.drive(run_id) == 0
    thread_id = Run.objects.get(pk=run_id).thread_id
    [proposal] = proposals.page(ALICE, thread_id).items
    assert proposals.approve(ALICE, proposal.id).applied
    return proposal


def stored(proposal: Proposal) -> Proposal:
    found = get_store().find_proposal(proposal.id)
    assert found is not None
    return found


def effects(desk: Desk) -> list[str]:
    """The idempotency keys under which the world was changed, as the witness saw them."""
    return [line[2] for line in desk.touched() if line[0] == "tool"]


def told(proposal: Proposal) -> int:
    said = Message.objects.filter(thread_id=proposal.scope.thread_id).exclude(action_proposal_outcome=None)
    return said.count()


@pytest.mark.parametrize("place", [f"commit:{number}:{when}" for number in (2, 3, 4) for when in ("before", "after")])
def test_a_turn_killed_while_it_proposes_has_proposed_once(desk: Desk, place: str) -> None:
    run_id = desk.send("Move 7.", agent="refunds")
    desk.kill(run_id, place)
    desk.recover()
    run = Run.objects.get(pk=run_id)
    assert (run.status, len(proposals.page(ALICE, run.thread_id).items)) == ("completed", 1)
    told = [frame["kind"] for frame in frames(run_id) if frame["kind"] in {"approval-requested", "tool-output"}]
    assert told == ["approval-requested", "tool-output"]
    assert (ended(run_id), effects(desk)) == (True, [])


@pytest.mark.parametrize(("place", "effected", "claimed"), RETRIED)
def test_one_that_is_tried_again_changes_the_world_under_one_key(
    desk: Desk, place: str, effected: int, claimed: int
) -> None:
    proposal = approved(desk, "refunds")
    desk.execute(proposal.id, place)
    assert desk.sweep() == 0
    assert effects(desk) == [proposal.asked.idempotency_key] * effected
    done = stored(proposal)
    assert done.execution is not None
    assert (done.execution.status, done.execution.generation) == ("succeeded", claimed)
    assert done.delivery is not None
    assert done.delivery.status == "delivered"
    assert desk.sweep() == 0
    assert (len(effects(desk)), told(proposal)) == (effected, 1)


@pytest.mark.parametrize(("place", "effected"), HELD)
def test_one_that_holds_ends_unknown_and_never_runs_again_by_itself(desk: Desk, place: str, effected: int) -> None:
    proposal = approved(desk, "transfers")
    desk.execute(proposal.id, place)
    for _ in range(3):
        assert desk.sweep() == 0
    lost = stored(proposal)
    assert lost.execution is not None
    assert (lost.execution.status, lost.outcome, told(proposal)) == ("unknown", None, 0)
    assert len(effects(desk)) == effected
    answer = proposals.settle_unknown(ALICE, proposal.id, reason="I asked the bank.", error="It never arrived.")
    assert answer.applied
    assert told(proposal) == 1
    assert len(effects(desk)) == effected


def test_a_person_lets_an_unknown_one_run_again_under_the_same_key(desk: Desk) -> None:
    proposal = approved(desk, "transfers")
    desk.execute(proposal.id, "tool:transfer:begin")
    assert desk.sweep() == 0
    assert proposals.run_again(ALICE, proposal.id, reason="The bank has seen nothing.").applied
    assert desk.sweep() == 0
    assert effects(desk) == [proposal.asked.idempotency_key]
    done = stored(proposal)
    assert done.execution is not None
    assert done.execution.status == "succeeded"


@pytest.mark.parametrize("place", ["proposal:admitting", "proposal:admitted"])
def test_a_worker_killed_between_the_record_and_the_admission_tells_the_thread_once(desk: Desk, place: str) -> None:
    proposal = approved(desk, "refunds")
    store = get_store()
    store.set_active_run(proposal.scope.thread_id, "another run")
    desk.execute(proposal.id, "proposal:settled")
    assert told(proposal) == 0
    store.set_active_run(proposal.scope.thread_id, None)
    desk.sweep(at=place)
    assert desk.parent.order(sweep=True, ahead=200) == 0
    assert (told(proposal), len(effects(desk))) == (1, 1)
