"""Capability `erasure`: what somebody said goes; rows, refs, times and figures stay."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import F, Q
from django.db.models.functions import Coalesce

from agent.domain.proposal_erasure import without_texts
from agent.domain.proposal_json import fingerprint, from_snapshot, snapshot
from agent.domain.states import Decision, DeliveryStatus, ExecutionStatus
from agent.models import (
    ActionProposal,
    IdempotencyKey,
    MemoryFact,
    Message,
    QueuedMessage,
    Run,
    RunStep,
    StagedAttachment,
    Thread,
    ThreadSummary,
    ToolCall,
)
from agent.models.erasure import erase
from agent.models.fields import REF
from agent.store.orm import frames
from agent.store.orm.proposal_rows import shown
from agent.store.orm.unit import OrmUnit

# What of a row is text (the rest of it is counted, or says who and when), and what stands there afterwards.
OF_MESSAGE: dict[str, object] = {
    "content": "",
    **dict.fromkeys(("tool_calls", "tool_results", "attachments", "follow_ups"), None),
    **dict.fromkeys(("reasoning", "ui", "provider_state", "feedback"), None),
}
OF_CALL: dict[str, object] = {
    "input": {},
    **dict.fromkeys(("output", "decision_reason", "answers", "confirmation", "error"), None),
}
OF_RUN: dict[str, object] = {"input": {}, "error_message": None}
OF_THREAD: dict[str, object] = {"title": "", "queue_pause": None}

UNFINISHED = (
    Q(decision=Decision.PENDING)
    | Q(execution_status__in=(ExecutionStatus.QUEUED, ExecutionStatus.EXECUTING, ExecutionStatus.UNKNOWN))
    | Q(delivery_status__in=(DeliveryStatus.PENDING, DeliveryStatus.ADMITTING))
)


class OrmErasure(OrmUnit):
    def has_open_work(self, actor_ref: str) -> bool:
        if Run.objects.using(self.db).open().filter(actor_ref=actor_ref).exists():
            return True
        theirs = ActionProposal.objects.using(self.db).filter(actor_ref=shown(actor_ref, REF))
        return theirs.filter(UNFINISHED).exists()

    def threads_of(self, actor_ref: str, after: str = "", limit: int = 100) -> list[str]:
        rows = Thread.objects.using(self.db).owned_by(actor_ref).filter(pk__gt=after)
        return list(rows.order_by("pk").values_list("pk", flat=True)[: max(limit, 0)])

    def runs_of(self, actor_ref: str, after: str = "", limit: int = 100) -> list[str]:
        rows = Run.objects.using(self.db).filter(actor_ref=actor_ref, pk__gt=after)
        return list(rows.order_by("pk").values_list("pk", flat=True)[: max(limit, 0)])

    def proposals_of(self, actor_ref: str, after: str = "", limit: int = 100) -> list[str]:
        rows = ActionProposal.objects.using(self.db).filter(actor_ref=shown(actor_ref, REF), pk__gt=after)
        return list(rows.order_by("pk").values_list("pk", flat=True)[: max(limit, 0)])

    def erase_thread(self, thread_id: str) -> bool:
        with self.joined():
            thread = Thread.objects.using(self.db).filter(pk=thread_id)
            if not thread.filter(active_run_id=None).select_for_update().exists():
                return False
            thread.update(deleted_at=Coalesce("deleted_at", self.clock()), **OF_THREAD)
            Message.objects.using(self.db).filter(thread_id=thread_id).update(**OF_MESSAGE)
            ToolCall.objects.using(self.db).filter(thread_id=thread_id).update(**OF_CALL)
            for owned in (ThreadSummary, QueuedMessage):
                erase(owned.objects.using(self.db).filter(thread_id=thread_id))
            return True

    def erase_runs(self, run_ids: Sequence[str]) -> None:
        with self.joined():
            for some in frames.batches(run_ids):
                Run.objects.using(self.db).filter(pk__in=some).update(**OF_RUN)
                erase(RunStep.objects.using(self.db).filter(run_id__in=some))
                frames.remove(self.db, some)

    def erase_proposal(self, key: str) -> bool:
        seen = ActionProposal.objects.using(self.db).filter(pk=key).first()
        if seen is None:
            return False
        empty = without_texts(from_snapshot(seen.proposal))
        same = ActionProposal.objects.using(self.db).filter(pk=key, version=seen.version)
        text = {"create_fingerprint": fingerprint(empty.asked), "proposal": snapshot(empty)}
        return same.update(version=F("version") + 1, **text) == 1

    def erase_belongings(self, actor_ref: str) -> list[str]:
        with self.joined():
            erase(MemoryFact.objects.using(self.db).of_actor(actor_ref))
            erase(IdempotencyKey.objects.using(self.db).filter(actor_ref=actor_ref))
            erase(QueuedMessage.objects.using(self.db).filter(actor_ref=actor_ref))
            staged = StagedAttachment.objects.using(self.db).owned_by(actor_ref)
            files = [name for name in staged.values_list("file", flat=True) if name]
            erase(staged)
            return files
