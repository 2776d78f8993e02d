"""Proposals in memory: capabilities `proposals`, `proposal_replacement`, `proposal_worker` and `proposal_outcomes`.

A row is its canonical snapshot, so what comes out shares nothing with what is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime

from agent.domain import proposal_moves as moves
from agent.domain import proposal_rules as rules
from agent.domain.clock import epoch_ms
from agent.domain.proposal_json import fingerprint, from_snapshot, snapshot
from agent.domain.proposals import (
    Answer,
    NewProposal,
    Proposal,
    ProposalAnswer,
    ProposalCursor,
    ProposalScope,
)
from agent.domain.states import Decision, DeliveryStatus, ExecutionStatus
from agent.store.proposal_commands import CANDIDATES, UNKNOWN, Move, ProposalCommands, claiming, expire
from agent.testing.memory.messages import Messages
from agent.testing.memory.unit import unit

_WORK = {ExecutionStatus.QUEUED, ExecutionStatus.EXECUTING}
_OPEN_DELIVERY = {DeliveryStatus.PENDING, DeliveryStatus.ADMITTING}


class Proposals(Messages, ProposalCommands):
    def joined(self) -> AbstractContextManager[None]:
        return self.atomic()

    @unit
    def find_proposal(self, proposal_id: str) -> Proposal | None:
        text = self.proposals.get(proposal_id)
        return None if text is None else from_snapshot(text)

    @unit
    def change_proposal(self, proposal_id: str, move: Move, *, scope: ProposalScope | None = None) -> ProposalAnswer:
        seen = self.find_proposal(proposal_id)
        if seen is None or scope not in {None, seen.scope}:
            return UNKNOWN
        moved = move(seen, epoch_ms(self.clock()))
        if moved.proposal is not seen:
            self.proposals.put(proposal_id, snapshot(moved.proposal))
        return ProposalAnswer(status=moved.answer, proposal=self.find_proposal(proposal_id))

    @unit
    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        rules.check_creation(asked)
        known = self.find_proposal(asked.id)
        if known is not None:
            if known.scope != asked.scope:
                return ProposalAnswer(status=Answer.CONFLICT)
            same = fingerprint(known.asked) == fingerprint(asked)
            return ProposalAnswer(status=Answer.UNCHANGED if same else Answer.CONFLICT, proposal=known)
        if not self._has_room(asked, supersede=supersede):
            return ProposalAnswer(status=Answer.CONFLICT)
        self.proposals.put(asked.id, snapshot(Proposal(asked=asked, created_at=epoch_ms(self.clock()))))
        return ProposalAnswer(status=Answer.APPLIED, proposal=self.find_proposal(asked.id))

    def _has_room(self, asked: NewProposal, *, supersede: bool) -> bool:
        """Whether no other one of its group is in the way; a pending one is superseded, if so asked."""
        if asked.group is None:
            return True
        group = [one for one in self._all() if one.asked.group == asked.group and moves.is_open(one)]
        pending = [one for one in group if one.decision is Decision.PENDING]
        if not supersede:
            return not pending
        if len(group) > len(pending):
            return False
        for one in pending:
            self.change_proposal(one.id, lambda seen, now: moves.supersede(seen, asked.id, now))
        return True

    @unit
    def list_proposals(
        self,
        scope: ProposalScope,
        *,
        decision: str | None = None,
        limit: int = 100,
        after: ProposalCursor | None = None,
    ) -> list[Proposal]:
        rules.check_scope(scope)
        rules.check_page(limit, decision)
        mine = [one for one in self._all() if one.scope == scope and decision in {None, one.decision.value}]
        if after is not None:
            mine = [one for one in mine if (one.created_at, one.id) > (after.created_at, after.id)]
        return _in_order(mine)[:limit]

    def backfill_proposal_index(self, limit: int) -> int:
        rules.check_limit(limit)
        return 0  # there is no index to fill

    @unit
    def claim_next_proposal(
        self, worker_id: str, lease_ms: int, now: datetime, *, most: int = moves.CLAIMS_MAX
    ) -> Proposal | None:
        rules.check_lease(lease_ms, worker_id)
        due, claim = epoch_ms(now), claiming(worker_id, lease_ms, most)
        for each in self._workable(due)[:CANDIDATES]:
            answer = self.change_proposal(each.id, claim)
            if answer.applied:
                return answer.proposal
        return None

    def _workable(self, now: int) -> list[Proposal]:
        """What is lost, then what is queued, oldest first."""
        open_ = [one for one in self._all() if one.execution and one.execution.status in _WORK]
        leases = {one.id: one.execution.lease for one in open_ if one.execution}
        lost = [one for one in open_ if (lease := leases[one.id]) and lease.expires_at <= now]
        lost.sort(key=lambda one: (leases[one.id].expires_at, one.created_at, one.id))  # type: ignore[union-attr]
        return [*lost, *_in_order(one for one in open_ if leases[one.id] is None)]

    @unit
    def expire_due_proposals(self, now: datetime, limit: int = 100) -> list[Proposal]:
        rules.check_limit(limit)
        due = epoch_ms(now)
        overdue = [one for one in self._all() if one.decision is Decision.PENDING and moves.is_due(one, due)]
        overdue.sort(key=lambda one: (one.asked.expires_at, one.created_at, one.id))
        answers = [self.change_proposal(each.id, expire) for each in overdue[:limit]]
        return [answer.proposal for answer in answers if answer.applied and answer.proposal is not None]

    @unit
    def due_outcomes(self, now: datetime, limit: int = 32, *, scope: ProposalScope | None = None) -> list[Proposal]:
        rules.check_limit(limit)
        due = epoch_ms(now)
        found = [(at, one) for one in self._all() if scope in {None, one.scope} and (at := _due_at(one)) <= due]
        return [one for _, one in sorted(found, key=lambda pair: (pair[0], pair[1].id))][:limit]

    def _all(self) -> Iterator[Proposal]:
        return (from_snapshot(text) for text in list(self.proposals))


def _due_at(proposal: Proposal) -> float:
    delivery = proposal.delivery
    if delivery is None or delivery.status not in _OPEN_DELIVERY:
        return float("inf")
    return (delivery.lease.expires_at if delivery.lease else delivery.due_at) or 0


def _in_order(proposals: Iterable[Proposal]) -> list[Proposal]:
    return sorted(proposals, key=lambda one: (one.created_at, one.id))
