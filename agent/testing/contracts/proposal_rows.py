"""What the cases about proposals are told with: short ways to ask, to decide and to execute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agent.domain.actor import Actor
from agent.domain.clock import epoch_ms
from agent.domain.commands import AppendMessage
from agent.domain.proposals import Decider, NewProposal, Proposal, ProposalAnswer, ProposalScope, Settlement
from agent.errors import Invalid
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch
from agent.testing.contracts.rows import ANA, new_thread
from agent.testing.contracts.store import START

LEAD = Actor("lead", ("lead",), "acme")
MINE = ProposalScope(tenant_ref="acme", actor_ref="ana", thread_id="thread-1")
OTHERS = (
    replace(MINE, actor_ref="bo"),
    replace(MINE, thread_id="thread-2"),
    replace(MINE, tenant_ref="other"),
    replace(MINE, tenant_ref=None),
    replace(MINE, tenant_ref=""),
    replace(MINE, actor_ref="Ana"),
    replace(MINE, actor_ref="ana "),
)
LEASE_MS = 30_000
NOW_MS = epoch_ms(START)


def asked(proposal_id: str = "p1", scope: ProposalScope = MINE, **more: Any) -> NewProposal:  # noqa: ANN401 - any field
    """A refund that Ana's agent wants to make."""
    made = NewProposal(
        id=proposal_id,
        scope=scope,
        origin_run_id="run-1",
        origin_message_id="message-1",
        origin_tool_call_id=f"call-{proposal_id[:200]}",
        tool_name="refund_order",
        input={"order": 1042, "cents": 500},
        preparation_input={"order": "1042", "cents": 500},
        execution_context={"requestId": "req-1", "agentName": "support"},
        confirmation={"title": "Refund 1042", "verb": "Refund"},
        approver="role:lead",
        idempotency_key=f"run-1:call-{proposal_id[:200]}",
    )
    return replace(made, **more)


def made(store: AgentStore, proposal_id: str = "p1", scope: ProposalScope = MINE, **more: Any) -> Proposal:  # noqa: ANN401
    """A new pending proposal."""
    answer = store.create_proposal(asked(proposal_id, scope, **more))
    if answer.proposal is None or not answer.applied:
        raise ContractMismatch(f"the proposal {proposal_id} was not made: {answer.status}")
    return answer.proposal


def decide(
    store: AgentStore,
    decision: str = "approved",
    proposal_id: str = "p1",
    scope: ProposalScope = MINE,
    *,
    actor: Actor | None = LEAD,
    reason: str | None = None,
) -> ProposalAnswer:
    return store.decide_proposal(scope, proposal_id, decision, Decider(actor=actor, via="web", reason=reason))


def approved(store: AgentStore, proposal_id: str = "p1", scope: ProposalScope = MINE, **more: Any) -> Proposal:  # noqa: ANN401
    made(store, proposal_id, scope, **more)
    return needed(decide(store, "approved", proposal_id, scope))


def claim(store: AgentStore, proposal_id: str = "p1", scope: ProposalScope = MINE, *, most: int = 6) -> ProposalAnswer:
    return store.claim_proposal(scope, proposal_id, LEASE_MS, "worker-1", most=most)


def claimed(store: AgentStore, proposal_id: str = "p1", scope: ProposalScope = MINE, **more: Any) -> Proposal:  # noqa: ANN401
    approved(store, proposal_id, scope, **more)
    return needed(claim(store, proposal_id, scope))


def fence(proposal: Proposal) -> tuple[str, int]:
    """The token and the generation of its holder."""
    if proposal.execution is None or proposal.execution.lease is None:
        raise ContractMismatch("nobody holds the proposal")
    return proposal.execution.lease.token, proposal.execution.generation


def settle(store: AgentStore, held: Proposal, end: Settlement | None = None) -> ProposalAnswer:
    """Settle in the name of whoever was given `held`."""
    return store.settle_proposal(held.scope, held.id, *fence(held), end or succeeded())


def settled(store: AgentStore, proposal_id: str = "p1", scope: ProposalScope = MINE, **more: Any) -> Proposal:  # noqa: ANN401
    return needed(settle(store, claimed(store, proposal_id, scope, **more)))


def succeeded(**more: Any) -> Settlement:  # noqa: ANN401 - any field
    fields: dict[str, Any] = {"result": {"refunded": True}, **more}
    return Settlement(status="succeeded", **fields)


def failed(error: str = "The shop is closed.") -> Settlement:
    return Settlement(status="failed", error=error)


def needed(answer: ProposalAnswer) -> Proposal:
    if answer.proposal is None or not answer.applied:
        raise ContractMismatch(f"expected applied, came {answer.status}")
    return answer.proposal


def stored(store: AgentStore, proposal_id: str = "p1") -> Proposal:
    found = store.find_proposal(proposal_id)
    if found is None:
        raise ContractMismatch(f"the proposal {proposal_id} is gone")
    return found


def own_scope(store: AgentStore, *, held_by: str | None = None) -> ProposalScope:
    """The scope of a new thread of Ana's, for outcomes to be told in."""
    return ProposalScope(tenant_ref=ANA.tenant_ref, actor_ref=ANA.ref, thread_id=new_thread(store, held_by=held_by))


def telling(proposal: Proposal, text: str = "Done.") -> AppendMessage:
    return AppendMessage(
        thread_id=proposal.scope.thread_id,
        role="assistant",
        content=text,
        action_proposal_outcome={"proposalId": proposal.id},
    )


def refused(call: Callable[[], object], what: str) -> None:
    """The call is rejected for what it was given."""
    try:
        call()
    except (Invalid, TypeError):
        return
    raise ContractMismatch(f"{what} was not rejected")
