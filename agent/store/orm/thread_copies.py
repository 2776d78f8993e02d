"""Capability `threads`: a fork, and the delete for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from agent.domain.forks import call_copy, copied_part, in_call_order, message_copy
from agent.domain.snapshots import Message as MessageValue
from agent.domain.snapshots import ThreadSummary
from agent.domain.snapshots import ToolCall as ToolCallValue
from agent.errors import NotFound
from agent.models import Message, QueuedMessage, Run, RunStep, Thread, ToolCall
from agent.models import ThreadSummary as ThreadSummaryRow
from agent.models.erasure import erase
from agent.models.inserts import Insert
from agent.store.orm import frames, rows
from agent.store.orm.unit import OrmUnit

_threads, _messages, _calls = Insert(Thread), Insert(Message), Insert(ToolCall)


class OrmThreadCopies(OrmUnit):
    def fork_thread(self, thread_id: str, from_message_id: str) -> ThreadSummary:
        with self.joined():
            source = Thread.objects.using(self.db).alive().filter(pk=thread_id).select_for_update()
            found = source.values(*rows.THREAD).first()
            if found is not None:
                return self._forked(rows.thread_summary(found), from_message_id)
        raise NotFound("There is no such conversation.")

    def _forked(self, source: ThreadSummary, from_message_id: str) -> ThreadSummary:
        all_messages = Message.objects.using(self.db).filter(thread_id=source.id).in_order()
        messages = copied_part([rows.message(row) for row in all_messages.values(*rows.MESSAGE)], from_message_id)
        by_message = self._calls_of(messages)
        fork_id, message_ids, call_ids = self.new_id(), dict[str, str](), dict[str, str]()
        for message in messages:
            message_ids[message.id] = self.new_id()
            call_ids.update((call.id, self.new_id()) for call in in_call_order(by_message.get(message.id, ())))
        copies = [
            message_copy(message, id=message_ids[message.id], thread_id=fork_id, seq=seq, call_ids=call_ids)
            for seq, message in enumerate(messages, start=1)
        ]
        summary = self._insert_thread(source, fork_id, copies)
        drafts = [_messages.draft(self.db, rows.columns_of(copy, rows.MESSAGE)) for copy in copies]
        _messages.many(self.db, drafts)
        self._copy_calls(by_message, fork_id, message_ids, call_ids)
        return summary

    def _insert_thread(self, source: ThreadSummary, fork_id: str, copies: Sequence[MessageValue]) -> ThreadSummary:
        now = self.clock()
        fresh = {"id": fork_id, "external_id": None, "active_run_id": None, "transient": False}
        times = {"created_at": now, "updated_at": now, "last_seq": len(copies)}
        stored = _threads.one(
            self.db, _threads.draft(self.db, {**rows.columns_of(source, rows.THREAD), **fresh, **times})
        )
        return rows.thread_summary(stored, copies[-1].content[: rows.PREVIEW] if copies else "")

    def _calls_of(self, messages: Sequence[MessageValue]) -> dict[str, list[ToolCallValue]]:
        """The calls of these messages, by message; the read is by thread, for a list of ids could be too long."""
        by_message: dict[str, list[ToolCallValue]] = {message.id: [] for message in messages}
        if messages:
            found = ToolCall.objects.using(self.db).filter(thread_id=messages[0].thread_id)
            for row in found.values(*rows.TOOL_CALL):
                if row["message_id"] in by_message:
                    by_message[row["message_id"]].append(rows.tool_call(row))
        return by_message

    def _copy_calls(
        self,
        by_message: dict[str, list[ToolCallValue]],
        fork_id: str,
        message_ids: dict[str, str],
        call_ids: dict[str, str],
    ) -> None:
        now = self.clock()
        copies = [
            call_copy(call, thread_id=fork_id, message_ids=message_ids, call_ids=call_ids, now=now)
            for calls in by_message.values()
            for call in calls
        ]
        _calls.many(self.db, [_calls.draft(self.db, rows.columns_of(copy, rows.TOOL_CALL)) for copy in copies])

    def deleted_threads(self, before: datetime, limit: int = 100) -> list[str]:
        idle = Thread.objects.using(self.db).deleted_before(before).filter(active_run_id=None)
        return list(idle.order_by("deleted_at", "pk").values_list("pk", flat=True)[: max(limit, 0)])

    def purge_thread(self, thread_id: str) -> bool:
        with self.joined():
            if not Thread.objects.using(self.db).filter(pk=thread_id).select_for_update().exists():
                return False
            runs = list(Run.objects.using(self.db).filter(thread_id=thread_id).values_list("pk", flat=True))
            frames.remove(self.db, runs)
            for steps in frames.batches(runs):
                erase(RunStep.objects.using(self.db).filter(run_id__in=steps))
            for owned in (ToolCall, Message, ThreadSummaryRow, QueuedMessage):
                erase(owned.objects.using(self.db).filter(thread_id=thread_id))
            erase(Thread.objects.using(self.db).filter(pk=thread_id))
            return True
