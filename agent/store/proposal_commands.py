"""The mutations of proposals, alike in every store of ours: checked, moved purely, written by compare-and-set."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from agent.domain import proposal_moves as moves
from agent.domain import proposal_rules as rules
from agent.domain.actor import Owner
from agent.domain.commands import AppendMessage
from agent.domain.proposal_moves import Moved
from agent.domain.proposals import (
    Answer,
    Decider,
    Lease,
    Proposal,
    ProposalAnswer,
    ProposalScope,
    Settlement,
)
from agent.domain.queue import ThreadHold
from agent.domain.snapshots import Message
from agent.domain.states import Decision

Move = Callable[[Proposal, int], Moved]

ATTEMPTS = 32  # of a compare-and-set, before it is a conflict
CANDIDATES = 32  # that a claim looks at
UNKNOWN = ProposalAnswer(status=Answer.NOT_FOUND)


class ProposalCommands:
    """A store that keeps proposals derives from it; the first five methods are what it has of its own."""

    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    proposal_admission_supported = True

    def change_proposal(self, proposal_id: str, move: Move, *, scope: ProposalScope | None = None) -> ProposalAnswer:
        """Move by compare-and-set, with the clock read at each attempt; `not_found` in another scope."""
        raise NotImplementedError

    def lock_thread(self, thread_id: str) -> ThreadHold | None:
        raise NotImplementedError

    def find_proposal(self, proposal_id: str) -> Proposal | None:
        raise NotImplementedError

    def append_message(self, message: AppendMessage) -> Message:
        raise NotImplementedError

    def joined(self) -> AbstractContextManager[None]:
        """A unit of work of its own, or the caller's."""
        raise NotImplementedError

    def get_proposal(self, scope: ProposalScope, proposal_id: str) -> Proposal | None:
        rules.check_scope(scope)
        found = self.find_proposal(proposal_id)
        return found if found is not None and found.scope == scope else None

    def decide_proposal(self, scope: ProposalScope, proposal_id: str, decision: str, by: Decider) -> ProposalAnswer:
        rules.check_scope(scope)
        command = rules.check_command(decision, by)
        return self.change_proposal(proposal_id, lambda seen, now: moves.decide(seen, command, by, now), scope=scope)

    def claim_proposal(
        self, scope: ProposalScope, proposal_id: str, lease_ms: int, worker_id: str, *, most: int = moves.CLAIMS_MAX
    ) -> ProposalAnswer:
        rules.check_scope(scope)
        rules.check_lease(lease_ms, worker_id)
        return self.change_proposal(proposal_id, claiming(worker_id, lease_ms, most), scope=scope)

    def renew_proposal(
        self, scope: ProposalScope, proposal_id: str, token: str, generation: int, lease_ms: int
    ) -> ProposalAnswer:
        rules.check_scope(scope)
        rules.check_lease(lease_ms)

        def renew(seen: Proposal, now: int) -> Moved:
            return moves.renew(seen, token, generation, until=now + lease_ms, now=now)

        return self.change_proposal(proposal_id, renew, scope=scope)

    def settle_proposal(
        self, scope: ProposalScope, proposal_id: str, token: str, generation: int, result: Settlement
    ) -> ProposalAnswer:
        rules.check_scope(scope)
        rules.check_settlement(result)

        def settle(seen: Proposal, now: int) -> Moved:
            return moves.settle(seen, token, generation, result, now)

        return self.change_proposal(proposal_id, settle, scope=scope)

    def settle_and_tell(
        self,
        scope: ProposalScope,
        proposal_id: str,
        token: str,
        generation: int,
        result: Settlement,
        message: Callable[[Proposal], AppendMessage],
    ) -> ProposalAnswer:
        """Answers how it was settled; the delivery in the answer says whether the thread was told."""
        rules.check_scope(scope)
        rules.check_settlement(result)
        message_id = self.new_id()
        with self.joined():  # the thread's row first: rows are locked in one order
            thread = self.lock_thread(scope.thread_id)

            def settle_and_admit(seen: Proposal, now: int) -> Moved:
                settled = moves.settle(seen, token, generation, result, now)
                if settled.answer is not Answer.APPLIED:
                    return settled
                told = moves.admit(settled.proposal, None, _readiness(thread, scope), message_id, now)
                return replace(settled, proposal=told.proposal)

            answer = self.change_proposal(proposal_id, settle_and_admit, scope=scope)
            if answer.applied and answer.proposal is not None and answer.proposal.is_told:
                self.append_message(replace(message(answer.proposal), id=message_id))
        return answer

    def settle_unknown_proposal(
        self, scope: ProposalScope, proposal_id: str, result: Settlement | None, by: Decider
    ) -> ProposalAnswer:
        rules.check_scope(scope)
        rules.check_decider(by)
        if result is not None:
            rules.check_settlement(result)

        def settle(seen: Proposal, now: int) -> Moved:
            return moves.settle_unknown(seen, result, by, now)

        return self.change_proposal(proposal_id, settle, scope=scope)

    def claim_outcome(self, proposal_id: str, lease_ms: int) -> ProposalAnswer:
        rules.check_lease(lease_ms)

        def claim(seen: Proposal, now: int) -> Moved:
            return moves.claim_outcome(seen, new_lease(now + lease_ms), now)

        return self.change_proposal(proposal_id, claim)

    def admit_outcome(self, proposal_id: str, token: str | None, message: AppendMessage) -> ProposalAnswer:
        said = replace(message, id=message.id or self.new_id())
        with self.joined():  # the thread's row first: rows are locked in one order
            thread = self.lock_thread(message.thread_id)

            def admit(seen: Proposal, now: int) -> Moved:
                if message.thread_id != seen.scope.thread_id:
                    return Moved(Answer.CONFLICT, seen)
                return moves.admit(seen, token, _readiness(thread, seen.scope), said.id or "", now)

            answer = self.change_proposal(proposal_id, admit)
            if answer.applied:
                self.append_message(said)
        return answer


def claiming(worker_id: str, lease_ms: int, most: int) -> Move:
    def claim(seen: Proposal, now: int) -> Moved:
        return moves.claim(seen, new_lease(now + lease_ms, worker_id), now, most=most)

    return claim


def new_lease(until: int, worker_id: str | None = None) -> Lease:
    return Lease(token=secrets.token_hex(16), expires_at=until, worker_id=worker_id)


def expire(seen: Proposal, now: int) -> Moved:
    """The move of a deadline."""
    return moves.decide(seen, Decision.EXPIRED, Decider(actor=None), now)


def _readiness(thread: ThreadHold | None, scope: ProposalScope) -> Answer:
    """Whether the outcome may be told in this thread now."""
    if thread is None or thread.owner != Owner(scope.actor_ref, scope.tenant_ref):
        return Answer.DISCARDED
    return Answer.APPLIED if thread.run_id is None else Answer.BUSY
