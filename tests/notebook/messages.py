"""The capability `messages` in dictionaries."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from agent.domain.commands import AppendMessage
from agent.domain.decisions import approval_card
from agent.domain.snapshots import JsonList, Message, ThreadDetail
from agent.domain.text import clean_text
from agent.errors import Conflict, NotFound
from tests.notebook.book import alone, ident, name, own, text
from tests.notebook.threads import Threads

LISTS = {"tool_calls", "tool_results", "attachments", "follow_ups", "ui"}
OBJECTS = {"usage", "action_proposal_outcome", "feedback"}
TEXTS = {"reasoning", "provider_state"}
NAMES = {"agent_name": 128, "persona": 128, "run_id": 64, "role": 32}


class Messages(Threads):
    def append_message(self, message: AppendMessage) -> Message:
        with self.atomic():
            given = {field.name: getattr(message, field.name) for field in fields(message)}
            columns = {column: _stored(column, value) for column, value in given.items()}
            thread = self.live(message.thread_id)
            if thread is None:
                raise NotFound("There is no such thread.")
            key = self.new_id() if message.id is None else ident(message.id)
            if key in self.messages:
                raise Conflict("There is a message with this id.")
            if message.role == "assistant" and not message.content.strip():
                columns["content"] = ""
            row = Message(**{**columns, "id": key, "seq": thread.last_seq + 1, "created_at": self.clock()})
            self.messages[key] = row
            self.change(thread.id, last_seq=row.seq, updated_at=self.clock())
            return _shown(row)

    @alone
    def get_thread(self, thread_id: str) -> ThreadDetail | None:
        row = self.live(thread_id)
        if row is None:
            return None
        said = tuple(replace(_shown(one), approvals=self._cards(one)) for one in self.said_in(thread_id))
        return ThreadDetail(summary=self.summary(row), messages=said)

    def _cards(self, message: Message) -> JsonList | None:
        asked = [call for call in self._calls_of(message) if call.approver is not None]
        return [own(approval_card(call)) for call in sorted(asked, key=lambda call: call.id)] or None

    @alone
    def set_message_tool_calls(self, message_id: str, calls: JsonList) -> None:
        self._set(message_id, tool_calls=calls)

    @alone
    def set_message_tool_results(self, message_id: str, results: JsonList) -> None:
        self._set(message_id, tool_results=results)

    @alone
    def set_message_follow_ups(self, message_id: str, items: list[str]) -> None:
        self._set(message_id, follow_ups=items)

    def _set(self, message_id: str, **columns: Any) -> None:
        row, stored = self.messages.get(message_id), {key: _stored(key, value) for key, value in columns.items()}
        if row is not None:
            self.messages[message_id] = replace(row, **stored)

    def truncate_from(self, thread_id: str, message_id: str) -> int:
        with self.atomic():
            first = self.messages.get(message_id)
            if first is None or first.thread_id != thread_id or self.live(thread_id) is None:
                return 0
            return self._drop(thread_id, first.seq)

    def truncate_after_last_user(self, thread_id: str) -> int | None:
        with self.atomic():
            said = self.said_in(thread_id) if self.live(thread_id) else []
            asked = [message.seq for message in said if message.role == "user"]
            return self._drop(thread_id, asked[-1] + 1) if asked else None

    def _drop(self, thread_id: str, seq: int) -> int:
        gone = [message for message in self.said_in(thread_id) if message.seq >= seq]
        for message in gone:
            self.forget(message)
        self.change(thread_id, updated_at=self.clock())
        return len(gone)

    @alone
    def messages_of_run(self, thread_id: str, run_id: str) -> list[Message] | None:
        said = self.said_in(thread_id) if self.live(thread_id) else []
        if all(message.run_id is None for message in said):
            return None
        return [_shown(message) for message in said if message.run_id == run_id]


def _stored(column: str, value: Any) -> Any:
    if column in LISTS:
        return own(value) or None
    if column in OBJECTS:
        return own(value)
    if column in TEXTS:
        return text(value)
    if column == "content":
        return clean_text(value)
    return name(value, NAMES[column]) if column in NAMES else value


def _shown(row: Message) -> Message:
    """The row with JSON of its own."""
    return replace(row, **{column: own(getattr(row, column)) for column in LISTS | OBJECTS})
