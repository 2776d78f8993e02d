"""What people decide about action proposals (spec 07 §1, §7): one way for every channel, and one trail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agent.domain.actor import Actor, Owner
from agent.domain.commands import Unset
from agent.domain.model_calls import Json
from agent.domain.proposals import Answer, Decider, Proposal, ProposalAnswer, ProposalCursor, ProposalScope, Settlement
from agent.domain.states import Decision
from agent.errors import CardChanged, Invalid, NotAllowed, NotFound, NotSupported
from agent.flows import dispatch, events, outcomes
from agent.flows.approvals import may_decide
from agent.flows.handing import lock
from agent.store import get_store
from agent.store.base import AgentStore

PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPage:
    """Proposals that the caller may see, and where the next page begins; None = this is the last."""

    items: tuple[Proposal, ...]
    next: ProposalCursor | None = None


def approve(
    actor: Actor,
    proposal_id: str,
    *,
    thread_id: str | None = None,
    digest: str | None = None,
    via: str = "web",
    remember: bool = False,
    overrule: bool = False,
) -> ProposalAnswer:
    """Let a worker carry it out. The same decision again is `unchanged`, and the first decider stays.

    `overrule` passes the rule of who answers to the approver, which a superuser of the console does; never four eyes.
    Raises `NotFound`, `NotAllowed` and `CardChanged`; a decision that comes too late is an answer.
    """
    by = Decider(actor=actor, via=via, remember=remember)
    shown = _Shown(thread_id=thread_id, digest=digest)
    return _decide(actor, proposal_id, Decision.APPROVED, by, shown, overrule=overrule)


def reject(
    actor: Actor,
    proposal_id: str,
    *,
    thread_id: str | None = None,
    reason: str | None = None,
    digest: str | None = None,
    via: str = "web",
    overrule: bool = False,
) -> ProposalAnswer:
    """Refuse it; the thread is told, with the reason. As `approve` otherwise."""
    by = Decider(actor=actor, via=via, reason=reason)
    shown = _Shown(thread_id=thread_id, digest=digest)
    return _decide(actor, proposal_id, Decision.REJECTED, by, shown, overrule=overrule)


def settle_unknown(
    actor: Actor,
    proposal_id: str,
    *,
    reason: str,
    result: Json | Unset = Unset.UNSET,
    error: str | None = None,
    via: str = "admin",
    overrule: bool = False,
) -> ProposalAnswer:
    """Say what became of an execution that was lost: it failed with an `error`, or it succeeded."""
    end = Settlement(status="failed" if error is not None else "succeeded", result=result, error=error)
    by = Decider(actor=actor, via=via, reason=reason)
    return _settle_unknown(actor, proposal_id, end, by, overrule=overrule)


def run_again(
    actor: Actor, proposal_id: str, *, reason: str, via: str = "admin", overrule: bool = False
) -> ProposalAnswer:
    """Let a lost execution run once more, with the same idempotency key."""
    by = Decider(actor=actor, via=via, reason=reason)
    return _settle_unknown(actor, proposal_id, None, by, overrule=overrule)


def page(actor: Actor, thread_id: str, *, after: ProposalCursor | None = None) -> ProposalPage:
    """A thread's proposals, oldest first: all of them for its owner, for others those that they may decide."""
    store = get_store()
    owner = store.owner_of_thread(thread_id)
    if owner is None:
        raise NotFound
    if not supports(store):
        if not actor.same_as(owner):
            raise NotAllowed
        return ProposalPage(items=())
    scope = ProposalScope(tenant_ref=owner.tenant_ref, actor_ref=owner.ref, thread_id=thread_id)
    found = store.list_proposals(scope, limit=PAGE, after=after)
    visible = [each for each in found if actor.same_as(owner) or may_decide(actor, each.asked.approver, owner)]
    if not visible and not actor.same_as(owner):
        raise NotAllowed
    last = ProposalCursor(created_at=found[-1].created_at, id=found[-1].id) if len(found) == PAGE else None
    return ProposalPage(items=tuple(visible), next=last)


def expire_due(limit: int = 100) -> int:
    """Expire what nobody has decided in time; how many. Idempotent."""
    store = get_store()
    expired = store.expire_due_proposals(store.clock(), limit) if supports(store) else []
    for each in expired:
        events.thread_changed(store, each.scope.thread_id, "outcome")
    return len(expired)


def supports(store: AgentStore) -> bool:
    return "proposals" in store.capabilities


def found(store: AgentStore, proposal_id: str, *, thread_id: str | None = None) -> Proposal:
    """A proposal by its id; if a thread is named, of that live one."""
    if not supports(store):
        raise NotSupported
    proposal = store.find_proposal(proposal_id)
    if proposal is None or thread_id not in {None, proposal.scope.thread_id}:
        raise NotFound
    if thread_id is not None and store.owner_of_thread(thread_id) is None:
        raise NotFound
    return proposal


def owner_of(proposal: Proposal) -> Owner:
    return Owner(proposal.scope.actor_ref, proposal.scope.tenant_ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What the decider was shown: in which conversation, and the digest of the card; None where it was not said."""

    thread_id: str | None
    digest: str | None


def _decide(
    actor: Actor, proposal_id: str, word: Decision, by: Decider, shown: _Shown, *, overrule: bool
) -> ProposalAnswer:
    store = get_store()
    proposal = _decidable(store, actor, proposal_id, shown.thread_id, overrule=overrule)
    if shown.digest is not None and shown.digest != proposal.digest:
        raise CardChanged
    return _moved(store, proposal, lambda: store.decide_proposal(proposal.scope, proposal_id, word, by))


def _settle_unknown(
    actor: Actor, proposal_id: str, end: Settlement | None, by: Decider, *, overrule: bool
) -> ProposalAnswer:
    if not (by.reason or "").strip():
        raise Invalid.field("reason", "say how you know")
    store = get_store()
    proposal = _decidable(store, actor, proposal_id, overrule=overrule)
    return _moved(store, proposal, lambda: store.settle_unknown_proposal(proposal.scope, proposal_id, end, by))


def _decidable(
    store: AgentStore, actor: Actor, proposal_id: str, thread_id: str | None = None, *, overrule: bool
) -> Proposal:
    proposal = found(store, proposal_id, thread_id=thread_id)
    if not (overrule or may_decide(actor, proposal.asked.approver, owner_of(proposal))):
        raise NotAllowed
    return proposal


def _moved(store: AgentStore, proposal: Proposal, move: Callable[[], ProposalAnswer]) -> ProposalAnswer:
    """Make the move, and have follow what follows from it: a worker, or the outcome in the thread."""
    with store.atomic():
        lock(store, proposal.scope.thread_id)
        answer = move()
        after = answer.proposal
        if after is not None and answer.status in {Answer.APPLIED, Answer.EXPIRED}:
            outcomes.tell(store, after)
            events.thread_changed(store, proposal.scope.thread_id, "outcome")
            if answer.applied:
                events.proposal_decided(store, after)
            if after.execution is not None:
                store.on_commit(partial(dispatch.proposal, proposal.id))
    return answer
