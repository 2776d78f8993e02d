"""A worker is told to stop with an action in hand: it is carried out once, or by another one under the same key."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.domain.clock import epoch_ms
from agent.domain.proposals import Proposal
from agent.flows import proposals
from agent.store import get_store
from agent.tasks import sweep_proposals
from tests.workers.conftest import StartWorker
from tests.workers.process import Worker, until
from tests.workers.test_processes import ALICE, over, run_of, send

pytestmark = pytest.mark.once  # how a worker ends does not depend on the database


def approved(folder: Path) -> Proposal:
    """An action that a person has approved, and that a worker has begun."""
    run_id = send(folder, "pay")
    until(lambda: over(run_id))
    [proposal] = proposals.page(ALICE, run_of(run_id).thread_id).items
    assert proposals.approve(ALICE, proposal.id).applied
    until((folder / "paid").exists)
    return proposal


def stored(proposal: Proposal) -> Proposal:
    found = get_store().find_proposal(proposal.id)
    assert found is not None
    return found


def lapsed(proposal: Proposal) -> bool:
    """Whether whoever had it in hand has lost it."""
    held = stored(proposal).execution
    assert held is not None
    assert held.lease is not None
    return held.lease.expires_at <= epoch_ms(get_store().clock())


def check_end(proposal: Proposal, folder: Path, *, claimed: int) -> None:
    done = stored(proposal)
    assert done.execution is not None
    assert (done.execution.status, done.execution.generation) == ("succeeded", claimed)
    assert (folder / "paid").read_text().split() == [proposal.asked.idempotency_key] * claimed
    detail = get_store().get_thread(proposal.scope.thread_id)
    assert detail is not None
    told = [message.action_proposal_outcome for message in detail.messages if message.action_proposal_outcome]
    assert [outcome["status"] for outcome in told] == ["succeeded"]


def test_one_that_is_told_to_stop_finishes_the_action_it_has_in_hand(worker: StartWorker, tmp_path: Path) -> None:
    folder = tmp_path / "payment"
    first = worker(pool="prefork").ready()
    proposal = approved(folder)
    first.ask_to_stop()
    until(lambda: "warm shutdown" in first.told.lower())
    assert stored(proposal).outcome is None
    (folder / "go-pay").touch()
    assert first.wait() == 0, first.told
    check_end(proposal, folder, claimed=1)


def test_one_that_has_no_time_to_finish_leaves_it_to_the_next_under_the_same_key(
    worker: StartWorker, tmp_path: Path
) -> None:
    folder = tmp_path / "payment"
    first = worker(pool="prefork", REMAP_SIGTERM="SIGQUIT").ready()
    proposal = approved(folder)
    first.ask_to_stop()
    first.wait()
    assert stored(proposal).outcome is None
    (folder / "go-pay").touch()
    second: Worker = worker(pool="prefork").ready()
    until(lambda: lapsed(proposal))
    sweep_proposals.delay()
    until(lambda: stored(proposal).outcome is not None)
    second.ask_to_stop()
    assert second.wait() == 0, second.told
    check_end(proposal, folder, claimed=2)
