"""Many decide and many work at once, on threads of several processes: one wins, the others are told the truth."""

from __future__ import annotations

from collections import Counter

from agent.domain.actor import Actor
from agent.domain.proposals import Proposal, ProposalScope
from agent.models import ActionProposal
from agent.store import get_store
from agent.testing.contracts.proposal_rows import approved, made
from tests.races.conftest import Race

ALICE = Actor("alice")


def scope() -> ProposalScope:
    thread = get_store().create_thread(actor=ALICE)
    return ProposalScope(tenant_ref=None, actor_ref=ALICE.ref, thread_id=thread.id)


def stored(proposal: Proposal) -> Proposal:
    found = get_store().find_proposal(proposal.id)
    assert found is not None
    return found


def told_in(thread_id: str) -> int:
    detail = get_store().get_thread(thread_id)
    assert detail is not None
    return len(detail.messages)


def test_of_many_who_decide_a_proposal_one_is_applied_and_all_name_the_winner(race: Race) -> None:
    for number in range(4):
        proposal = made(get_store(), f"p{number}", scope())
        words = ["approve", "reject"] * 6
        answers = race([(word, {"proposal_id": proposal.id, "who": f"{word} {n}"}) for n, word in enumerate(words)])
        after = stored(proposal)
        assert after.audit is not None
        winner = after.audit.actor_ref
        assert {who for _, who in answers} == {winner}
        won = winner.split()[0]
        assert Counter(status for status, _ in answers) == {"applied": 1, "unchanged": 5, "conflict": 6}
        assert all(status == "conflict" for (status, _), word in zip(answers, words, strict=True) if word != won)
        assert ActionProposal.objects.get(run_ref="run-1", thread_ref=proposal.scope.thread_id).version == 2 + (
            won == "reject"  # and the outcome is told at once
        )
        assert told_in(proposal.scope.thread_id) == (won == "reject")
        if after.execution is not None:
            race([("take", {"worker": "w"})] * 2)


def test_each_of_many_workers_takes_another_proposal(race: Race) -> None:
    waiting = {approved(get_store(), f"p{number}", scope()).id for number in range(6)}
    taken = race([("take", {"worker": f"w{number}"}) for number in range(8)])
    assert Counter(taken) == Counter([*waiting, None, None])
