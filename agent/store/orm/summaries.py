"""Capability `summaries`: what stands for the messages that a history policy has dropped."""

from __future__ import annotations

from typing import Any

from agent.domain.commands import SaveSummary
from agent.domain.snapshots import StoredSummary
from agent.domain.text import clean_cut
from agent.models import Thread, ThreadSummary
from agent.models.fields import NAME
from agent.models.inserts import Insert
from agent.models.prepared import Select, Slot, Update
from agent.models.thread import ThreadSummaryQuerySet
from agent.store.orm import rows
from agent.store.orm.unit import OrmUnit

_WRITTEN = ("up_to_seq", "text", "model_id", "updated_at")

_insert = Insert(ThreadSummary)


def _of_policy() -> ThreadSummaryQuerySet:
    return ThreadSummary.objects.filter(thread_id=Slot("thread"), policy_fingerprint=Slot("policy"))


_summary = Select(lambda: _of_policy().filter(thread__deleted_at=None).values_list(*rows.SUMMARY))
_replace = Update(lambda: _of_policy().filter(up_to_seq__lt=Slot("up_to_seq")), {name: Slot(name) for name in _WRITTEN})


class OrmSummaries(OrmUnit):
    def thread_summary(self, thread_id: str, policy_fingerprint: str) -> StoredSummary | None:
        row = _summary.first(self.db, thread=thread_id, policy=policy_fingerprint)
        return None if row is None else StoredSummary(**dict(zip(rows.SUMMARY, row, strict=True)))

    def save_thread_summary(self, summary: SaveSummary) -> bool:
        now = self.clock()
        values: dict[str, Any] = {name: getattr(summary, name, None) for name in rows.SUMMARY}
        values |= {"model_id": clean_cut(summary.model_id, NAME)}
        draft = _insert.draft(self.db, values | {"id": self.new_id(), "created_at": now, "updated_at": now})
        with self.joined():
            # The lock makes the writers of a thread serial; without it a truncation could miss the new row.
            live = Thread.objects.using(self.db).alive().filter(pk=summary.thread_id)
            if live.select_for_update().values_list("pk", flat=True).first() is None:
                return False
            written = {name: draft.stored[name] for name in _WRITTEN}
            if _replace(self.db, thread=summary.thread_id, policy=summary.policy_fingerprint, **written):
                return True
            return _insert.new(self.db, draft) is not None
