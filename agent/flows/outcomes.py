"""Telling a thread how its action ended (spec 07 §11): once, when no run holds the thread, without any model."""

from __future__ import annotations

import logging
from functools import partial

from agent.conf import agent_settings
from agent.domain.outcomes import outcome_message
from agent.domain.proposals import Proposal, ProposalScope
from agent.domain.redaction import redacted_trace
from agent.domain.runs import Run
from agent.flows import events
from agent.registry import registry
from agent.store import get_store
from agent.store.base import AgentStore

ADMIT_MS = 30_000
BATCH = 32

logger = logging.getLogger("agent.proposals")


def tell(store: AgentStore, proposal: Proposal) -> None:
    """Deliver in the unit that made the outcome, if the thread is idle; else the next sweep does.

    Whoever moved the proposal lets those who watch the thread know, told or not: its card has changed.
    """
    if proposal.outcome is not None:
        store.admit_outcome(proposal.id, None, outcome_message(proposal))


def admit_due(limit: int = BATCH, *, scope: ProposalScope | None = None) -> int:
    """Deliver outcomes that wait; how many. Safe in several processes at once."""
    store, told = get_store(), 0
    if "proposal_outcomes" not in store.capabilities:
        return 0
    for proposal in store.due_outcomes(store.clock(), limit, scope=scope):
        told += _admit(store, proposal.id)
    return told


def admit_after(store: AgentStore, run: Run) -> None:
    """Have the outcomes that waited for this run told once it is settled; whoever settles it does not wait for that.

    Where nothing is declared that makes proposals, no statement is spent on it.
    """
    makes = registry.makes_proposals(agent_settings().action_approval_mode)
    if run.depth or not makes or "proposal_outcomes" not in store.capabilities:
        return
    scope = ProposalScope(tenant_ref=run.actor.tenant_ref, actor_ref=run.actor.ref, thread_id=run.thread_id)
    store.on_commit(partial(_admit_quietly, scope))


def _admit_quietly(scope: ProposalScope) -> None:
    try:
        admit_due(scope=scope)
    except Exception as error:  # the run is settled all the same, and the sweep finds what is left
        logger.warning("outcomes could not be told: %s", redacted_trace(error))


def _admit(store: AgentStore, proposal_id: str) -> bool:
    claimed = store.claim_outcome(proposal_id, ADMIT_MS)
    proposal = claimed.proposal
    if not claimed.applied or proposal is None or proposal.delivery is None or proposal.delivery.lease is None:
        return False
    with store.atomic():
        answer = store.admit_outcome(proposal_id, proposal.delivery.lease.token, outcome_message(proposal))
        if answer.applied:
            events.thread_changed(store, proposal.scope.thread_id, "outcome")
    return answer.applied
