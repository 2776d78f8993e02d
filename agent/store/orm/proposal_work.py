"""Capabilities `proposal_worker` and `proposal_outcomes`: finding what is to be done, over all scopes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db import connections

from agent.domain import proposal_moves as moves
from agent.domain import proposal_rules as rules
from agent.domain.clock import epoch_ms
from agent.domain.proposal_json import from_snapshot
from agent.domain.proposals import Proposal, ProposalScope
from agent.domain.states import Decision, DeliveryStatus, ExecutionStatus
from agent.models import ActionProposal
from agent.models.prepared import Row, Select, Slot
from agent.models.proposal import ActionProposalQuerySet
from agent.store.orm.proposals import OrmProposals
from agent.store.proposal_commands import CANDIDATES, claiming, expire

_OPEN_DELIVERY = (DeliveryStatus.PENDING, DeliveryStatus.ADMITTING)


def _queued() -> ActionProposalQuerySet:
    return ActionProposal.objects.filter(discovery_index_version=1, execution_status=ExecutionStatus.QUEUED)


def _lost() -> ActionProposalQuerySet:
    executing = ActionProposal.objects.filter(discovery_index_version=1, execution_status=ExecutionStatus.EXECUTING)
    return executing.filter(lease_expires_at_ms__lte=Slot("now"))


def _oldest(rows: ActionProposalQuerySet) -> Any:  # noqa: ANN401 - a queryset of columns
    return rows.order_by("lease_expires_at_ms", "created_at_ms", "id").values_list("id", "version", "proposal")


# What another worker is just taking is passed over. That is only a shorter way: the compare-and-set decides.
_first_lost = Select(lambda: _oldest(_lost().select_for_update(skip_locked=True))[:1])
_first_queued = Select(lambda: _oldest(_queued().select_for_update(skip_locked=True))[:1])
_all_lost = Select(lambda: _oldest(_lost())[:CANDIDATES])
_all_queued = Select(lambda: _oldest(_queued())[:CANDIDATES])


class OrmProposalWork(OrmProposals):
    def claim_next_proposal(
        self, worker_id: str, lease_ms: int, now: datetime, *, most: int = moves.CLAIMS_MAX
    ) -> Proposal | None:
        rules.check_lease(lease_ms, worker_id)
        due, claim = epoch_ms(now), claiming(worker_id, lease_ms, most)
        with self.joined():
            for key, version, text in self._candidates(due):
                answer = self.changed(key, [version, text], claim)
                if answer.applied:
                    return answer.proposal
        return None

    def _candidates(self, now: int) -> Iterator[Row]:
        """What is lost, then what is queued, oldest first; each after the one before was looked at."""
        if not connections[self.db].features.has_select_for_update_skip_locked:
            yield from _all_lost(self.db, now=now)
            yield from _all_queued(self.db)
            return
        for _ in range(CANDIDATES):
            row = _first_lost.first(self.db, now=now) or _first_queued.first(self.db)
            if row is None:
                return
            yield row

    def expire_due_proposals(self, now: datetime, limit: int = 100) -> list[Proposal]:
        rules.check_limit(limit)
        overdue = self._proposals().filter(
            discovery_index_version=1, decision=Decision.PENDING, proposal_expires_at_ms__lte=epoch_ms(now)
        )
        ordered = overdue.order_by("proposal_expires_at_ms", "created_at_ms", "id")
        found = [from_snapshot(text) for text in ordered.values_list("proposal", flat=True)[:limit]]
        answers = [self.change_proposal(each.id, expire) for each in found]
        return [answer.proposal for answer in answers if answer.applied and answer.proposal is not None]

    def due_outcomes(self, now: datetime, limit: int = 32, *, scope: ProposalScope | None = None) -> list[Proposal]:
        rules.check_limit(limit)
        rows = self._proposals() if scope is None else self._proposals().scoped(scope.key)
        due = rows.filter(delivery_status__in=_OPEN_DELIVERY, delivery_lease_expires_at_ms__lte=epoch_ms(now))
        ordered = due.order_by("delivery_lease_expires_at_ms", "id")
        return [from_snapshot(text) for text in ordered.values_list("proposal", flat=True)[:limit]]
