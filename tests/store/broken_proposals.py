"""Stores in memory, each of which breaks one promise about proposals."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from agent.domain.commands import AppendMessage, Unset
from agent.domain.proposal_json import snapshot
from agent.domain.proposals import (
    Answer,
    Decider,
    NewProposal,
    Proposal,
    ProposalAnswer,
    ProposalCursor,
    ProposalScope,
    Settlement,
)
from agent.domain.queue import ThreadHold
from agent.domain.states import Decision, ExecutionStatus
from agent.errors import Invalid, NotAllowed
from agent.store.proposal_commands import Move
from agent.testing import InMemoryStore

APPLIED = ProposalAnswer(status=Answer.APPLIED)
AN_HOUR = 3_600_000


class ForgetsItself(InMemoryStore):
    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        answer = super().create_proposal(asked, supersede=supersede)
        return replace(answer, status=Answer.APPLIED) if answer.status == "unchanged" else answer


class SeesEveryScope(InMemoryStore):
    def change_proposal(self, proposal_id: str, move: Move, *, scope: ProposalScope | None = None) -> ProposalAnswer:
        return super().change_proposal(proposal_id, move)


class LastDecisionWins(InMemoryStore):
    def decide_proposal(self, scope: ProposalScope, proposal_id: str, decision: str, by: Decider) -> ProposalAnswer:
        seen = self.find_proposal(proposal_id)
        if seen is not None:
            self.proposals.put(proposal_id, snapshot(replace(seen, decision=Decision.PENDING, execution=None)))
        return super().decide_proposal(scope, proposal_id, decision, by)


class TwoEyesAreEnough(InMemoryStore):
    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        return super().create_proposal(replace(asked, four_eyes=False), supersede=supersede)


class IsLate(InMemoryStore):
    def change_proposal(self, proposal_id: str, move: Move, *, scope: ProposalScope | None = None) -> ProposalAnswer:
        return super().change_proposal(proposal_id, lambda seen, now: move(seen, now - 1), scope=scope)


class AnyFenceWill(InMemoryStore):
    def settle_proposal(
        self, scope: ProposalScope, proposal_id: str, token: str, generation: int, result: Settlement
    ) -> ProposalAnswer:
        seen = self.find_proposal(proposal_id)
        if seen is not None and seen.execution is not None and seen.execution.lease is not None:
            token, generation = seen.execution.lease.token, seen.execution.generation
        return super().settle_proposal(scope, proposal_id, token, generation, result)


class AlwaysRetries(InMemoryStore):
    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        return super().create_proposal(replace(asked, on_lost="retry"), supersede=supersede)


class NeverRunsAgain(InMemoryStore):
    def settle_unknown_proposal(
        self, scope: ProposalScope, proposal_id: str, result: Settlement | None, by: Decider
    ) -> ProposalAnswer:
        end = result or Settlement(status="failed", error="No.")
        return super().settle_unknown_proposal(scope, proposal_id, end, by)


class Lists(InMemoryStore):
    """Lists as it is told to by who derives from it."""

    def list_proposals(
        self,
        scope: ProposalScope,
        *,
        decision: str | None = None,
        limit: int = 100,
        after: ProposalCursor | None = None,
    ) -> list[Proposal]:
        try:
            return self.listed(super().list_proposals(scope, decision=decision, limit=limit, after=after))
        except Invalid:
            return []

    def listed(self, found: list[Proposal]) -> list[Proposal]:
        return found


class ListsNewestFirst(Lists):
    def listed(self, found: list[Proposal]) -> list[Proposal]:
        return found[::-1]


class TakesAnEmptyTenantForNone(InMemoryStore):
    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        scope = replace(asked.scope, tenant_ref=asked.scope.tenant_ref or None)
        return super().create_proposal(replace(asked, scope=scope), supersede=supersede)


class DropsStrangeCharacters(InMemoryStore):
    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        plain = str(asked.input).isascii() and "\\" not in repr(asked.input)
        return super().create_proposal(asked if plain else replace(asked, input={}), supersede=supersede)


class TakesAbsenceForNull(InMemoryStore):
    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        given = asked.preparation_input
        return super().create_proposal(
            replace(asked, preparation_input=None if isinstance(given, Unset) else given), supersede=supersede
        )


class AlwaysHasSomethingToFill(InMemoryStore):
    def backfill_proposal_index(self, limit: int) -> int:
        return limit


class TakesAnything(InMemoryStore):
    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        try:
            return super().create_proposal(asked, supersede=supersede)
        except Invalid:
            return APPLIED


class ObeysAnything(InMemoryStore):
    def decide_proposal(self, scope: ProposalScope, proposal_id: str, decision: str, by: Decider) -> ProposalAnswer:
        try:
            return super().decide_proposal(scope, proposal_id, decision, by)
        except (Invalid, NotAllowed):
            return APPLIED


class Worker(InMemoryStore):
    """Claims as it is told to by who derives from it."""

    def claim_next_proposal(self, worker_id: str, lease_ms: int, now: datetime, *, most: int = 6) -> Proposal | None:
        return self.next(worker_id, lease_ms, now, most)

    def next(self, worker_id: str, lease_ms: int, now: datetime, most: int) -> Proposal | None:
        return super().claim_next_proposal(worker_id, lease_ms, now, most=most)


class OnlyLooks(Worker):
    def next(self, worker_id: str, lease_ms: int, now: datetime, most: int) -> Proposal | None:
        with self.atomic():
            found = super().next(worker_id, lease_ms, now, most)
            if found is not None and found.execution is not None:
                queued = replace(found.execution, status=ExecutionStatus.QUEUED, lease=None)
                self.proposals.put(found.id, snapshot(replace(found, execution=queued)))
            return found


class ForgetsTheLost(Worker):
    def next(self, worker_id: str, lease_ms: int, now: datetime, most: int) -> Proposal | None:
        return super().next(worker_id, lease_ms, now - timedelta(days=9), most)


class RetriesForEver(Worker):
    def next(self, worker_id: str, lease_ms: int, now: datetime, most: int) -> Proposal | None:
        return super().next(worker_id, lease_ms, now, 1000)


class FindsWhatIsOver(Worker):
    def next(self, worker_id: str, lease_ms: int, now: datetime, most: int) -> Proposal | None:
        return super().next(worker_id, lease_ms, now, most) or next(self._all(), None)


class NewestFirst(InMemoryStore):
    def _workable(self, now: int) -> list[Proposal]:
        return super()._workable(now)[::-1]


class WorksForAnybody(Worker):
    def next(self, worker_id: str, lease_ms: int, now: datetime, most: int) -> Proposal | None:
        try:
            return super().next(worker_id, lease_ms, now, most)
        except Invalid:
            return None


class ExpiresWithoutEnd(InMemoryStore):
    def expire_due_proposals(self, now: datetime, limit: int = 100) -> list[Proposal]:
        return super().expire_due_proposals(now, 1000)


class RenewsNothing(InMemoryStore):
    def renew_proposal(
        self, scope: ProposalScope, proposal_id: str, token: str, generation: int, lease_ms: int
    ) -> ProposalAnswer:
        return ProposalAnswer(status=Answer.APPLIED, proposal=self.find_proposal(proposal_id))


class NeverSupersedes(InMemoryStore):
    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        return super().create_proposal(asked)


class HasOneGroup(InMemoryStore):
    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        return super().create_proposal(replace(asked, replacement_key="k"), supersede=supersede)

    def _has_room(self, asked: NewProposal, *, supersede: bool) -> bool:
        return not self.list_proposals(asked.scope) and super()._has_room(asked, supersede=supersede)


class HasRoomForAll(InMemoryStore):
    def _has_room(self, asked: NewProposal, *, supersede: bool) -> bool:
        return True


class HasNoRoomAgain(InMemoryStore):
    def _has_room(self, asked: NewProposal, *, supersede: bool) -> bool:
        return not any(one.asked.group == asked.group for one in self._all())


class ReplacesItself(InMemoryStore):
    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        self.proposals.drop(asked.id)
        return super().create_proposal(asked, supersede=supersede)


class TellsOnlySuccess(InMemoryStore):
    def due_outcomes(self, now: datetime, limit: int = 32, *, scope: ProposalScope | None = None) -> list[Proposal]:
        found = super().due_outcomes(now, limit, scope=scope)
        return [one for one in found if one.outcome is not None and one.outcome.status == "succeeded"]


class Teller(InMemoryStore):
    """Admits as it is told to by who derives from it."""

    def admit_outcome(self, proposal_id: str, token: str | None, message: AppendMessage) -> ProposalAnswer:
        return self.tell(proposal_id, token, message)

    def tell(self, proposal_id: str, token: str | None, message: AppendMessage) -> ProposalAnswer:
        return super().admit_outcome(proposal_id, token, message)


class MarksWithoutTelling(InMemoryStore):
    def admit_outcome(self, proposal_id: str, token: str | None, message: AppendMessage) -> ProposalAnswer:
        answer = super().admit_outcome(proposal_id, token, message)
        if answer.applied:
            self.truncate_from(message.thread_id, self.in_seq(message.thread_id)[-1].id)
        return answer


class WantsATokenAlways(Teller):
    def tell(self, proposal_id: str, token: str | None, message: AppendMessage) -> ProposalAnswer:
        return super().tell(proposal_id, token or "none", message)


class InterruptsRuns(InMemoryStore):
    def lock_thread(self, thread_id: str) -> ThreadHold | None:
        hold = super().lock_thread(thread_id)
        return hold and replace(hold, run_id=None)


class TellsAgain(Teller):
    def tell(self, proposal_id: str, token: str | None, message: AppendMessage) -> ProposalAnswer:
        answer = super().tell(proposal_id, token, message)
        return replace(answer, status=Answer.APPLIED) if answer.status == "unchanged" else answer


class TakesAnyToken(Teller):
    def tell(self, proposal_id: str, token: str | None, message: AppendMessage) -> ProposalAnswer:
        seen = self.find_proposal(proposal_id)
        lease = seen and seen.delivery and seen.delivery.lease
        return super().tell(proposal_id, lease.token if lease else token, message)


class KeepsWhatNobodyReads(Teller):
    def tell(self, proposal_id: str, token: str | None, message: AppendMessage) -> ProposalAnswer:
        answer = super().tell(proposal_id, token, message)
        return replace(answer, status=Answer.BUSY) if answer.status == "discarded" else answer


class ClaimsWhatIsNotOver(InMemoryStore):
    def claim_outcome(self, proposal_id: str, lease_ms: int) -> ProposalAnswer:
        answer = super().claim_outcome(proposal_id, lease_ms)
        return replace(answer, status=Answer.APPLIED) if answer.status == "conflict" else answer
