"""Proposals decided in words in the chat (spec 07 §9): the model never sees it, and the thread stores nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agent.conf import agent_settings
from agent.domain.actor import Actor
from agent.domain.proposals import Answer, Proposal, ProposalAnswer, ProposalScope
from agent.domain.snapshots import ThreadScope
from agent.domain.states import Decision
from agent.domain.vocabulary import Said, names, understood
from agent.flows import proposals
from agent.flows.approvals import may_decide
from agent.flows.ownership import own_thread
from agent.flows.starts import Send
from agent.store.base import AgentStore

LISTED = 20  # proposals that a reply names; with more an id is asked for
VIA = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What a message that was a decision came to, and the reply to show.

    `status`: that of the decision; `ambiguous` and `not_found` decided nothing.
    """

    thread_id: str
    text: str
    status: str
    proposal_id: str | None = None
    decision: str | None = None
    run_id: None = None  # no run is started by it

    def to_json(self) -> dict[str, Any]:
        told = {"status": self.status, "proposalId": self.proposal_id, "decision": self.decision}
        shown = {name: value for name, value in told.items() if value is not None}
        return {"threadId": self.thread_id, "proposalDecision": shown, "text": self.text}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Decided:
        """The outcome that an idempotency key has kept."""
        decision = told["proposalDecision"]
        return cls(
            thread_id=told["threadId"],
            text=told["text"],
            status=decision["status"],
            proposal_id=decision.get("proposalId"),
            decision=decision.get("decision"),
        )


def said_in(send: Send) -> Said | None:
    """The decision that a send may be: the whole of its message, to a thread that exists."""
    if send.thread_id is None or send.regenerate or send.attachments or send.message is None:
        return None
    return understood(send.message, agent_settings().decision_vocabulary)


def decide(store: AgentStore, actor: Actor, thread_id: str, said: Said) -> Decided | None:
    """Decide what the words are about; None when they are an ordinary message. Raises `NotFound`, `NotAllowed`."""
    if not proposals.supports(store):
        return None
    scope = _scope(thread_id, own_thread(store, actor, thread_id))
    if not store.list_proposals(scope, limit=1):
        return None  # nothing was ever proposed here
    mine = [each for each in _asked_about(store, scope, said) if _is_mine(actor, each)]
    if len(mine) == 1:
        return _decided(actor, thread_id, mine[0], said)
    if mine:
        return Decided(thread_id=thread_id, status="ambiguous", text=_which(mine))
    if said.id is None:
        return None
    return Decided(
        thread_id=thread_id,
        status=Answer.NOT_FOUND,
        text=_("Nothing that you may decide in this conversation has the id %(id)s.") % {"id": f"#{said.id[:100]}"},
    )


def _scope(thread_id: str, thread: ThreadScope) -> ProposalScope:
    owner = thread.owner
    return ProposalScope(tenant_ref=owner.tenant_ref, actor_ref=owner.ref, thread_id=thread_id)


def _asked_about(store: AgentStore, scope: ProposalScope, said: Said) -> list[Proposal]:
    """Everything that is pending; with an id what it names, also when that was decided before."""
    pending = store.list_proposals(scope, decision=Decision.PENDING, limit=proposals.PAGE)
    if said.id is None:
        return pending
    known = store.get_proposal(scope, said.id)
    return [known] if known is not None else [each for each in pending if names(said.id, each.id)]


def _is_mine(actor: Actor, proposal: Proposal) -> bool:
    if proposal.asked.four_eyes and proposal.scope.is_of(actor):
        return False
    return may_decide(actor, proposal.asked.approver, proposals.owner_of(proposal))


def _decided(actor: Actor, thread_id: str, proposal: Proposal, said: Said) -> Decided:
    if said.approves:
        answer = proposals.approve(actor, proposal.id, thread_id=thread_id, via=VIA, remember=said.remember)
    else:
        answer = proposals.reject(actor, proposal.id, thread_id=thread_id, via=VIA)
    after = answer.proposal or proposal
    return Decided(
        thread_id=thread_id,
        status=answer.status,
        proposal_id=proposal.id,
        decision=after.decision,
        text=_reply(answer, after),
    )


def _reply(answer: ProposalAnswer, proposal: Proposal) -> str:
    what = _title(proposal)
    if answer.status == Answer.EXPIRED:
        return _("%(what)s: too late, it has expired. Nothing was done.") % {"what": what}
    words = {
        Decision.APPROVED: _("%(what)s: approved. It is being carried out."),
        Decision.REJECTED: _("%(what)s: rejected. Nothing was done."),
    }
    if answer.status == Answer.CONFLICT:
        words = {
            Decision.APPROVED: _("%(what)s: it was approved before."),
            Decision.REJECTED: _("%(what)s: it was rejected before."),
        }
    return words.get(proposal.decision, _("%(what)s: it cannot be decided any more.")) % {"what": what}


def _title(proposal: Proposal) -> str:
    confirmation = proposal.asked.confirmation or {}
    return str(confirmation.get("title") or proposal.asked.tool_name)


def _which(found: Sequence[Proposal]) -> str:
    """Which are meant? Named with their ids, unless they are too many to read."""
    if len(found) > LISTED:
        text = ngettext("%(count)s action waits", "%(count)s actions wait", len(found)) % {"count": len(found)}
        return _("%(text)s for your decision: say which one, with # and its id.") % {"text": text}
    lines = [f"- #{each.id}: {_title(each)}" for each in found]
    return "\n".join([_("Several actions wait for your decision: say which one, with # and its id."), "", *lines])
