"""Messages in memory: capabilities `messages`, `message_ui`, `feedback`, `turn_reader`, and reading a whole thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from agent.domain.commands import AppendMessage
from agent.domain.decisions import approval_card
from agent.domain.proposal_json import from_snapshot
from agent.domain.snapshots import JsonList, Message, ThreadDetail, ThreadPage, ToolCall, TurnMessage
from agent.domain.states import MessageRole
from agent.domain.text import clean_text
from agent.errors import Conflict, NotFound
from agent.testing.memory.threads import Threads
from agent.testing.memory.unit import unit
from agent.testing.memory.values import ID, NAME, WORD, cleaned, copied, exact, listed

_JSON = (
    "tool_calls",
    "tool_results",
    "attachments",
    "follow_ups",
    "usage",
    "ui",
    "feedback",
    "action_proposal_outcome",
)


class Messages(Threads):
    @unit
    def append_message(self, message: AppendMessage) -> Message:
        thread = self.live_thread(message.thread_id)
        row = self._new_message(message, seq=1 + (thread.last_seq if thread else 0))
        if thread is None:
            raise NotFound("There is no such thread.")
        if row.id in self.messages:
            raise Conflict("There is a message with this id.")
        self.touch(thread.id, last_seq=row.seq)
        return _shown(self.messages.put(row.id, row))

    def _new_message(self, message: AppendMessage, *, seq: int) -> Message:
        return Message(
            id=self.new_id() if message.id is None else exact("id", message.id, ID),
            thread_id=message.thread_id,
            seq=seq,
            role=exact("role", message.role, WORD),
            content=_content(message),
            created_at=self.clock(),
            tool_calls=listed(message.tool_calls),
            tool_results=listed(message.tool_results),
            attachments=listed(message.attachments),
            follow_ups=listed(message.follow_ups),
            usage=copied(message.usage),
            agent_name=exact("agent_name", message.agent_name, NAME),
            persona=exact("persona", message.persona, NAME),
            run_id=exact("run_id", message.run_id, ID),
            reasoning=cleaned(message.reasoning),
            reasoning_ms=message.reasoning_ms,
            ui=listed(message.ui),
            provider_state=cleaned(message.provider_state),
            action_proposal_outcome=copied(message.action_proposal_outcome),
        )

    @unit
    def get_thread(self, thread_id: str) -> ThreadDetail | None:
        row = self.live_thread(thread_id)
        if row is None:
            return None
        messages = tuple(
            replace(_shown(one), approvals=self._approvals(one.id), run_status=self._run_status(one))
            for one in self.in_seq(thread_id)
        )
        return ThreadDetail(summary=self.summary(row), messages=messages)

    def _run_status(self, message: Message) -> str | None:
        run = self.run_rows.get(message.run_id or "")
        return run.status if run is not None and message.role == MessageRole.ASSISTANT else None

    def _approvals(self, message_id: str) -> JsonList | None:
        calls = sorted(self.calls_of_message.keys(message_id))
        asked = [self.calls[key] for key in calls if self.calls[key].approver is not None]
        return copied([approval_card(call, self._proposal_card(call)) for call in asked]) or None

    def _proposal_card(self, call: ToolCall) -> dict[str, Any] | None:
        text = self.proposals.get(call.proposal_id) if call.proposal_id else None
        return None if text is None else from_snapshot(text).card

    @unit
    def set_message_tool_calls(self, message_id: str, calls: JsonList) -> None:
        self._set_message(message_id, tool_calls=listed(calls))

    @unit
    def set_message_tool_results(self, message_id: str, results: JsonList) -> None:
        self._set_message(message_id, tool_results=listed(results))

    @unit
    def set_message_follow_ups(self, message_id: str, items: list[str]) -> None:
        self._set_message(message_id, follow_ups=listed(items))

    @unit
    def set_message_ui(self, message_id: str, components: JsonList) -> None:
        self._set_message(message_id, ui=listed(components))

    @unit
    def thread_of_message(self, message_id: str) -> str | None:
        message = self.messages.get(message_id)
        return message.thread_id if message and self.live_thread(message.thread_id) else None

    @unit
    def set_message_feedback(self, message_id: str, value: dict[str, Any] | None) -> bool:
        given = copied(value)
        message = self.messages.get(message_id)
        if message is None or message.role != MessageRole.ASSISTANT or not self.live_thread(message.thread_id):
            return False
        self._set_message(message_id, feedback=given)
        return True

    def _set_message(self, message_id: str, **changes: Any) -> None:  # noqa: ANN401 - columns of a row
        message = self.messages.get(message_id)
        if message is not None:
            self.messages.put(message_id, replace(message, **changes))

    @unit
    def truncate_from(self, thread_id: str, message_id: str) -> int:
        message = self.messages.get(message_id)
        if message is None or message.thread_id != thread_id or not self.live_thread(thread_id):
            return 0
        return self._drop_since(thread_id, message.seq)

    @unit
    def truncate_after_last_user(self, thread_id: str) -> int | None:
        if not self.live_thread(thread_id):
            return None
        asked = [message.seq for message in self.in_seq(thread_id) if message.role == MessageRole.USER]
        return self._drop_since(thread_id, asked[-1] + 1) if asked else None

    def _drop_since(self, thread_id: str, seq: int) -> int:
        """Newest first, so that taking it back restores the order."""
        dropped = [message.id for message in self.in_seq(thread_id) if message.seq >= seq]
        for message_id in reversed(dropped):
            for call_id in self.calls_of_message.keys(message_id):
                self.calls.drop(call_id)
            self.messages.drop(message_id)
        for summary in self.summaries_of_thread.keys(thread_id):
            if self.summaries[summary].up_to_seq >= seq:
                self.summaries.drop(summary)
        self.touch(thread_id)
        return len(dropped)

    @unit
    def messages_of_run(self, thread_id: str, run_id: str) -> list[Message] | None:
        messages = self.in_seq(thread_id) if self.live_thread(thread_id) else []
        if all(message.run_id is None for message in messages):
            return None
        return [_shown(message) for message in messages if message.run_id == run_id]

    @unit
    def load_thread_for_turn(
        self, thread_id: str, *, message_limit: int | None = None, before_seq: int | None = None
    ) -> ThreadPage | None:
        row = self.live_thread(thread_id)
        if row is None:
            return None
        below = row.last_seq + 1 if before_seq is None else min(before_seq, row.last_seq + 1)
        older = self._newest_first(thread_id, below)
        page: list[TurnMessage] = []
        has_more = False
        for message in older:
            if message_limit is not None and len(page) >= message_limit:
                has_more = True
                break
            page.append(_for_turn(message))
        everything = self._newest_first(thread_id, row.last_seq + 1)
        return ThreadPage(
            title=row.title,
            default_agent=row.default_agent,
            has_assistant_message=any(message.role == MessageRole.ASSISTANT for message in everything),
            has_more=has_more,
            messages=tuple(reversed(page)),
        )

    def _newest_first(self, thread_id: str, below: int) -> Iterator[Message]:
        """What counts of a thread, number by number, so that a page costs the same on a long one."""
        for seq in range(below - 1, 0, -1):
            key = self.message_at.first((thread_id, seq))
            if key is not None and not _blank(self.messages[key]):
                yield self.messages[key]


def _content(message: AppendMessage) -> str:
    blank = message.role == MessageRole.ASSISTANT and not message.content.strip()
    return "" if blank else clean_text(message.content)


def _blank(message: Message) -> bool:
    return message.role == MessageRole.ASSISTANT and message.content == "" and message.tool_calls is None


def _shown(message: Message) -> Message:
    """The row with JSON of its own."""
    held = {name: getattr(message, name) for name in _JSON if getattr(message, name) is not None}
    return replace(message, **{name: copied(value) for name, value in held.items()}) if held else message


def _for_turn(message: Message) -> TurnMessage:
    return TurnMessage(
        id=message.id,
        seq=message.seq,
        role=message.role,
        content=message.content,
        created_at=message.created_at,
        agent_name=message.agent_name,
        tool_calls=copied(message.tool_calls),
        tool_results=copied(message.tool_results),
        attachments=copied(message.attachments),
    )
