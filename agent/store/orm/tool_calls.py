"""Capability `tool_calls`: the ledger of calls. Decisions are in `approvals`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache

from agent.domain.actor import Owner
from agent.domain.commands import RecordToolCall, ToolCallPatch
from agent.domain.snapshots import Json, ToolCallApproval, ToolCallOutcome
from agent.domain.snapshots import ToolCall as ToolCallValue
from agent.domain.states import OPEN_TOOL_CALL, TOOL_CALL_MOVES, ToolCallStatus
from agent.domain.text import clean_cut
from agent.domain.tool_calls import column_call_id, settlement
from agent.errors import NotFound
from agent.models import Message, ToolCall
from agent.models.fields import NAME
from agent.models.inserts import Insert
from agent.models.prepared import Select, Slot, Update
from agent.models.tool_call import ToolCallQuerySet
from agent.store.orm import rows
from agent.store.orm.unit import OrmUnit

_insert = Insert(ToolCall)
_APPROVAL = tuple(field.name for field in fields(ToolCallApproval) if field.name != "scope")
_OUTCOME = tuple(field.name for field in fields(ToolCallOutcome))


def _call() -> ToolCallQuerySet:
    return ToolCall.objects.filter(pk=Slot("call"))


_owner = Select(lambda: _call().values_list("thread__actor_ref", "thread__tenant_ref"))
_run = Select(lambda: _call().values_list("run_id", "thread__active_run_id"))
_approval = Select(lambda: _call().values_list(*_APPROVAL, "thread__actor_ref", "thread__tenant_ref"))
_input = Select(lambda: _call().values_list("input"))


@lru_cache(maxsize=256)
def _patch(names: tuple[str, ...], status: str | None) -> Update:
    """The update that sets these columns, guarded by the state table where it sets a status."""
    sources = None if status is None else _sources(status)
    return Update(
        lambda: _call() if sources is None else _call().filter(status__in=sources),
        {name: Slot(name) for name in names},
    )


def _sources(status: str) -> list[str]:
    """The statuses from which a call may take this one; an open call may be told what it is."""
    moves = [seen for seen, allowed in TOOL_CALL_MOVES.items() if status in allowed]
    return [*moves, status] if status in OPEN_TOOL_CALL else moves


class OrmToolCalls(OrmUnit):
    def record_tool_call(self, call: RecordToolCall) -> str:
        now = self.clock()
        times = settlement(call.status, now)
        values = {name: getattr(call, name, None) for name in rows.TOOL_CALL}
        values |= {
            "tool_name": clean_cut(call.tool_name, NAME),
            "provider_call_id": column_call_id(call.provider_call_id),
            "decided_at": None if call.decision is None else now,
            "remember": False,
            "created_at": now,
            "executed_at": times.executed_at,
            "settled_at": times.settled_at,
        }
        if _insert.new(self.db, _insert.draft(self.db, values), under=(Message, call.message_id)) is not None:
            return call.id
        return self._recorded(call)

    def _recorded(self, call: RecordToolCall) -> str:
        """The id of the row that was there first: of this call of the provider, or of this very id."""
        known = ToolCall.objects.using(self.db)
        same = known.filter(run_id=call.run_id, provider_call_id=column_call_id(call.provider_call_id))
        first = (same | known.filter(pk=call.id)).values_list("pk", flat=True).first()
        if first is None:
            raise NotFound("There is no such message.")
        return first

    def update_tool_call(self, call_id: str, patch: ToolCallPatch) -> bool:
        changes = rows.given(patch)
        status = changes.get("status")
        if status is not None:
            times = settlement(status, self.clock())
            settled = {"executed_at": times.executed_at, "settled_at": times.settled_at}
            changes |= {name: at for name, at in settled.items() if at is not None}
            if not _sources(status):
                return False  # no way leads to it: a call is recorded so or never
        if not changes:
            return ToolCall.objects.using(self.db).filter(pk=call_id).exists()
        return _patch(tuple(changes), status)(self.db, call=call_id, **changes) == 1

    def get_tool_call(self, call_id: str) -> ToolCallValue | None:
        row = ToolCall.objects.using(self.db).filter(pk=call_id).values(*rows.TOOL_CALL).first()
        return None if row is None else rows.tool_call(row)

    def owner_of_tool_call(self, call_id: str) -> Owner | None:
        row = _owner.first(self.db, call=call_id)
        return None if row is None else Owner(row[0], row[1])

    def run_for_tool_call(self, call_id: str) -> str | None:
        row = _run.first(self.db, call=call_id)
        return None if row is None else row[0] or row[1]

    def tool_call_approval(self, call_id: str) -> ToolCallApproval | None:
        row = _approval.first(self.db, call=call_id)
        if row is None:
            return None
        *columns, ref, tenant_ref = row
        return ToolCallApproval(**dict(zip(_APPROVAL, columns, strict=True)), scope=Owner(ref, tenant_ref))

    def tool_call_input(self, call_id: str) -> Json:
        row = _input.first(self.db, call=call_id)
        return None if row is None else row[0]

    def tool_call_outcomes(self, call_ids: Sequence[str]) -> dict[str, ToolCallOutcome]:
        found = ToolCall.objects.using(self.db).filter(pk__in=call_ids).values(*_OUTCOME)
        return {row["id"]: ToolCallOutcome(**row) for row in found}

    def fail_unsettled_tool_calls(self, run_id: str, error: str) -> int:
        unsettled = ToolCall.objects.using(self.db).of_run(run_id).unsettled()
        return unsettled.update(status=ToolCallStatus.FAILED, error=error, settled_at=self.clock())
