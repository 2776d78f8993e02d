"""The promise of the store about actions that wait for a person outside the turn. One Protocol a capability.

Every mutation reads, moves purely with the clock read again at each attempt, and writes over the version it read; a
move that changes nothing writes nothing. A wrong scope is `not_found`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, runtime_checkable

from agent.domain.commands import AppendMessage
from agent.domain.proposals import (
    Decider,
    NewProposal,
    Proposal,
    ProposalAnswer,
    ProposalCursor,
    ProposalScope,
    Settlement,
)


class ProposalStore(Protocol):
    """Capability `proposals`."""

    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        """Insert or ignore: the same creation again is `unchanged`, another one of the same id `conflict`.

        With `supersede` (capability `proposal_replacement`) the pending proposal of its group is superseded in the
        same transaction; while an approved one of the group is not over, the creation is `conflict`.
        """

    def get_proposal(self, scope: ProposalScope, proposal_id: str) -> Proposal | None: ...

    def find_proposal(self, proposal_id: str) -> Proposal | None:
        """The proposal with its authoritative scope: for workers, which are told an id."""

    def list_proposals(
        self,
        scope: ProposalScope,
        *,
        decision: str | None = None,
        limit: int = 100,
        after: ProposalCursor | None = None,
    ) -> list[Proposal]:
        """Oldest first, then by id, above the cursor; `limit` 1 to 1000."""

    def decide_proposal(self, scope: ProposalScope, proposal_id: str, decision: str, by: Decider) -> ProposalAnswer:
        """`approved`, `rejected` or `expired`; raises `NotAllowed` for the requester under four eyes."""

    def claim_proposal(
        self, scope: ProposalScope, proposal_id: str, lease_ms: int, worker_id: str, *, most: int = 6
    ) -> ProposalAnswer:
        """Take it up with a new token; one that was lost `most` times, or whose tool holds, becomes `unknown`."""

    def renew_proposal(
        self, scope: ProposalScope, proposal_id: str, token: str, generation: int, lease_ms: int
    ) -> ProposalAnswer: ...

    def settle_proposal(
        self, scope: ProposalScope, proposal_id: str, token: str, generation: int, result: Settlement
    ) -> ProposalAnswer: ...

    def settle_unknown_proposal(
        self, scope: ProposalScope, proposal_id: str, result: Settlement | None, by: Decider
    ) -> ProposalAnswer:
        """What a person says of an `unknown` one; None = run it again."""

    def backfill_proposal_index(self, limit: int) -> int:
        """Fill the index columns of rows that workers do not see yet; how many."""


class ProposalReplacementStore(Protocol):
    """Capability `proposal_replacement`: `create_proposal` with `supersede`."""

    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer: ...


class ProposalWorkerStore(Protocol):
    """Capability `proposal_worker`: work of all scopes, in the order of creation."""

    def claim_next_proposal(self, worker_id: str, lease_ms: int, now: datetime, *, most: int = 6) -> Proposal | None:
        """Claim one of the first 32 that are queued or whose lease has lapsed at `now`."""

    def expire_due_proposals(self, now: datetime, limit: int = 100) -> list[Proposal]:
        """Expire pending ones whose deadline has come; those that this call expired."""


class ProposalOutcomeStore(Protocol):
    """Capability `proposal_outcomes`."""

    proposal_admission_supported: bool  # whether a message and a delivery state commit together

    def due_outcomes(self, now: datetime, limit: int = 32, *, scope: ProposalScope | None = None) -> list[Proposal]:
        """Outcomes that wait for their thread, or whose admission was lost: longest untried first."""

    def claim_outcome(self, proposal_id: str, lease_ms: int) -> ProposalAnswer: ...

    def admit_outcome(self, proposal_id: str, token: str | None, message: AppendMessage) -> ProposalAnswer:
        """Append the message and mark the delivery, or neither; `busy` while a run holds the thread.

        A token of None delivers a pending outcome in one step, where the thread is idle.
        """


@runtime_checkable
class SettlesAndTells(Protocol):
    """What a store may have besides, for speed: without it the end and its message are two moves of one unit."""

    def settle_and_tell(
        self,
        scope: ProposalScope,
        proposal_id: str,
        token: str,
        generation: int,
        result: Settlement,
        message: Callable[[Proposal], AppendMessage],
    ) -> ProposalAnswer:
        """`settle_proposal` and, where the thread is idle, `admit_outcome` of the settled one's message, in one move.

        Holds the thread's row before it writes. In a busy thread the outcome stays pending.
        """


class ConfirmTokenStore(Protocol):
    """Capability `confirm_tokens`: which tokens were used. Only hashes are kept."""

    def claim_token(self, token_hash: str, actor_ref: str, tool: str, expires_at_ms: int) -> bool:
        """Use it up; False when somebody has."""

    def release_token(self, token_hash: str) -> None: ...
    def purge_expired_tokens(self, now_ms: int) -> int: ...
