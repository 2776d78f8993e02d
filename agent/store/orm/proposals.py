"""Capabilities `proposals` and `proposal_replacement`: rows whose snapshot is the truth and whose columns index it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from agent.domain.states import ExecutionStatus
from agent.models import ActionProposal
from agent.models.inserts import Insert
from agent.models.prepared import Row, Select, Slot, Update
from agent.models.proposal import ActionProposalQuerySet
from agent.store.orm.proposal_rows import COLUMNS, INDEX, index_of, new_row, row_key
from agent.store.orm.unit import OrmUnit
from agent.store.proposal_commands import ATTEMPTS, UNKNOWN, Move, ProposalCommands

UNDER_WAY = (ExecutionStatus.QUEUED, ExecutionStatus.EXECUTING, ExecutionStatus.UNKNOWN)

_insert = Insert(ActionProposal)
_read = Select(lambda: ActionProposal.objects.filter(pk=Slot("key")).values_list("version", "proposal"))
_write = Update(
    lambda: ActionProposal.objects.filter(pk=Slot("key"), version=Slot("seen")),
    {"version": Slot("version"), **{name: Slot(name) for name in INDEX}},
)
_fill = Update(
    lambda: ActionProposal.objects.filter(pk=Slot("key"), version=Slot("seen")),
    {name: Slot(name) for name in COLUMNS},
)


class OrmProposals(OrmUnit, ProposalCommands):
    def find_proposal(self, proposal_id: str) -> Proposal | None:
        row = _read.first(self.db, key=row_key(proposal_id))
        return None if row is None else from_snapshot(row[1])

    def change_proposal(self, proposal_id: str, move: Move, *, scope: ProposalScope | None = None) -> ProposalAnswer:
        key = row_key(proposal_id)
        return self.changed(key, _read.first(self.db, key=key), move, scope=scope)

    def changed(self, key: str, row: Row | None, move: Move, *, scope: ProposalScope | None = None) -> ProposalAnswer:
        """Move the row from the version that was read; read again whenever somebody else wrote first."""
        for _ in range(ATTEMPTS):
            seen = None if row is None else from_snapshot(row[1])
            if row is None or seen is None or scope not in {None, seen.scope}:
                return UNKNOWN
            moved = move(seen, epoch_ms(self.clock()))
            if moved.proposal is seen or self._written(key, row[0], moved.proposal):
                return ProposalAnswer(status=moved.answer, proposal=moved.proposal)
            row = _read.first(self.db, key=key)
        return ProposalAnswer(status=Answer.CONFLICT, proposal=None if row is None else from_snapshot(row[1]))

    def _written(self, key: str, version: int, proposal: Proposal) -> bool:
        return _write(self.db, key=key, seen=version, version=version + 1, **index_of(proposal)) == 1

    def create_proposal(self, asked: NewProposal, *, supersede: bool = False) -> ProposalAnswer:
        rules.check_creation(asked)
        with self.joined():
            for _ in range(ATTEMPTS):
                known = self.find_proposal(asked.id)
                if known is not None:
                    return _same_again(known, asked)
                if supersede and not self._make_room(asked):
                    break
                proposal = Proposal(asked=asked, created_at=epoch_ms(self.clock()))
                if _insert.new(self.db, _insert.draft(self.db, new_row(proposal))) is not None:
                    return ProposalAnswer(status=Answer.APPLIED, proposal=from_snapshot(snapshot(proposal)))
                if not supersede and self.find_proposal(asked.id) is None:
                    break  # its group has a pending one
        return ProposalAnswer(status=Answer.CONFLICT)

    def _make_room(self, asked: NewProposal) -> bool:
        """Supersede the pending one of the group; False while an approved one is under way."""
        if asked.group is None:
            return True
        group = self._proposals().filter(replacement_group_key=asked.group)
        list(group.select_for_update().values_list("pk"))  # one at a time: creations that race would deadlock on MySQL
        if group.filter(execution_status__in=UNDER_WAY).exists():
            return False
        pending = [from_snapshot(text).id for text in group.awaiting_decision().values_list("proposal", flat=True)]
        answers = [
            self.change_proposal(each, lambda seen, now: moves.supersede(seen, asked.id, now)) for each in pending
        ]
        return not any(answer.proposal is not None and is_under_way(answer.proposal) for answer in answers)

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
        rows = self._proposals().scoped(scope.key)
        if decision is not None:
            rows = rows.filter(decision=decision)
        if after is None:
            return _page(rows, limit)
        at_cursor = [one for one in _of(rows.filter(created_at_ms=after.created_at)) if one.id > after.id]
        at_cursor.sort(key=_place)
        rest = limit - len(at_cursor)
        later = rows.filter(created_at_ms__gt=after.created_at)
        return [*at_cursor, *(_page(later, rest) if rest > 0 else ())][:limit]

    def backfill_proposal_index(self, limit: int) -> int:
        rules.check_limit(limit)
        keys = list(self._proposals().filter(discovery_index_version=0).values_list("pk", flat=True)[:limit])
        return sum(self._indexed(key) for key in keys)

    def _indexed(self, key: str) -> bool:
        row = _read.first(self.db, key=key)
        if row is None:
            return False
        filled = {**new_row(from_snapshot(row[1])), "version": row[0] + 1}
        return _fill(self.db, key=key, seen=row[0], **filled) == 1

    def _proposals(self) -> ActionProposalQuerySet:
        return ActionProposal.objects.using(self.db)


def is_under_way(proposal: Proposal) -> bool:
    return proposal.execution is not None and proposal.execution.status in UNDER_WAY


def _same_again(known: Proposal, asked: NewProposal) -> ProposalAnswer:
    if known.scope != asked.scope:
        return ProposalAnswer(status=Answer.CONFLICT)
    same = fingerprint(known.asked) == fingerprint(asked)
    return ProposalAnswer(status=Answer.UNCHANGED if same else Answer.CONFLICT, proposal=known)


def _page(rows: ActionProposalQuerySet, limit: int) -> list[Proposal]:
    """The first by time, then by id. Rows of one instant lie by their hashes, so the last instant is read whole."""
    page = _of(rows.order_by("created_at_ms", "id")[:limit])
    if len(page) == limit:
        last = page[-1].created_at
        page = [one for one in page if one.created_at < last] + _of(rows.filter(created_at_ms=last))
    return sorted(page, key=_place)[:limit]


def _of(rows: Any) -> list[Proposal]:  # noqa: ANN401 - a queryset, sliced or not
    return [from_snapshot(text) for text in rows.values_list("proposal", flat=True)]


_place: Callable[[Proposal], tuple[int, str]] = lambda one: (one.created_at, one.id)  # noqa: E731
