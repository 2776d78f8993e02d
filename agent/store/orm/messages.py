"""Capabilities `messages`, `message_ui` and `feedback`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import connections
from django.db.models import F, Func

from agent.domain.commands import AppendMessage
from agent.domain.snapshots import JsonList
from agent.domain.snapshots import Message as MessageValue
from agent.domain.states import MessageRole
from agent.errors import NotFound
from agent.models import Message, Thread, ThreadSummary, ToolCall
from agent.models.erasure import erase
from agent.models.message import MessageQuerySet
from agent.models.prepared import Slot, Update, returns_from_update
from agent.models.thread import ThreadQuerySet
from agent.store.orm import message_rows, rows
from agent.store.orm.unit import OrmUnit


def _live() -> ThreadQuerySet:
    return Thread.objects.alive().filter(pk=Slot("thread"))


# The next number of a thread, in one statement, which also makes the writers of one thread serial.
_numbered = {"last_seq": F("last_seq") + 1, "updated_at": Slot("now")}
_next_seq = Update(_live, _numbered, returning=("last_seq",))
_next_seq_mysql = Update(_live, {**_numbered, "last_seq": Func(F("last_seq") + 1, function="LAST_INSERT_ID")})
_results = Update(lambda: Message.objects.filter(pk=Slot("message")), {"tool_results": Slot("results")})


class OrmMessages(OrmUnit):
    def append_message(self, message: AppendMessage) -> MessageValue:
        now = self.clock()
        draft = message_rows.draft(self, message, now)
        with self.joined():
            seq = self._next_seq(message.thread_id, now)
            if seq is not None:
                return message_rows.insert(self, draft, seq=seq)
        raise NotFound("There is no such conversation.")

    def _next_seq(self, thread_id: str, now: datetime) -> int | None:
        if connections[self.db].vendor == "mysql":
            return _next_seq_mysql.last_insert_id(self.db, thread=thread_id, now=now)
        if returns_from_update(connections[self.db]):
            row = _next_seq.returned(self.db, thread=thread_id, now=now)
            return None if row is None else row[0]
        threads = Thread.objects.using(self.db).alive().filter(pk=thread_id).select_for_update()
        last = threads.values_list("last_seq", flat=True).first()
        if last is None:
            return None
        threads.update(last_seq=last + 1, updated_at=now)
        return last + 1

    def set_message_tool_calls(self, message_id: str, calls: JsonList) -> None:
        self._messages_of_id(message_id).update(tool_calls=calls)

    def set_message_tool_results(self, message_id: str, results: JsonList) -> None:
        _results(self.db, message=message_id, results=results)

    def set_message_follow_ups(self, message_id: str, items: list[str]) -> None:
        self._messages_of_id(message_id).update(follow_ups=items)

    def set_message_ui(self, message_id: str, components: JsonList) -> None:
        self._messages_of_id(message_id).update(ui=components)

    def _messages_of_id(self, message_id: str) -> MessageQuerySet:
        return Message.objects.using(self.db).filter(pk=message_id)

    def truncate_from(self, thread_id: str, message_id: str) -> int:
        with self.joined():
            if not self._locked_thread(thread_id):
                return 0
            named = self._messages_of_id(message_id).filter(thread_id=thread_id)
            seq = named.values_list("seq", flat=True).first()
            return 0 if seq is None else self._cut(thread_id, seq)

    def truncate_after_last_user(self, thread_id: str) -> int | None:
        with self.joined():
            if not self._locked_thread(thread_id):
                return None
            asked = Message.objects.using(self.db).filter(thread_id=thread_id, role=MessageRole.USER)
            seq = asked.newest_first().values_list("seq", flat=True).first()
            return None if seq is None else self._cut(thread_id, seq + 1)

    def _locked_thread(self, thread_id: str) -> bool:
        live = Thread.objects.using(self.db).alive().filter(pk=thread_id)
        return live.select_for_update().values_list("pk", flat=True).first() is not None

    def _cut(self, thread_id: str, seq: int) -> int:
        """Remove the messages from a number on, with what hangs on them; the thread is locked."""
        gone = Message.objects.using(self.db).filter(thread_id=thread_id).since(seq)
        erase(ToolCall.objects.using(self.db).filter(message_id__in=gone.values("pk")))
        erase(ThreadSummary.objects.using(self.db).filter(thread_id=thread_id).reaching(seq))
        count = erase(gone)
        Thread.objects.using(self.db).filter(pk=thread_id).update(updated_at=self.clock())
        return count

    def messages_of_run(self, thread_id: str, run_id: str) -> list[MessageValue] | None:
        messages = Message.objects.using(self.db).filter(thread_id=thread_id, thread__deleted_at=None)
        found = messages.of_run(run_id).in_order().values(*rows.MESSAGE)
        of_run = [rows.message(row) for row in found]
        if of_run or messages.exclude(run_id=None).exists():
            return of_run
        return None

    def thread_of_message(self, message_id: str) -> str | None:
        live = self._messages_of_id(message_id).filter(thread__deleted_at=None)
        return live.values_list("thread_id", flat=True).first()

    def set_message_feedback(self, message_id: str, value: dict[str, Any] | None) -> bool:
        answers = self._messages_of_id(message_id).answers().filter(thread__deleted_at=None)
        return answers.update(feedback=value) == 1
