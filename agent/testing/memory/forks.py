"""Forks in memory (spec 02 §4.12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.domain.forks import call_copy, copied_part, in_call_order, message_copy
from agent.domain.snapshots import Message, ThreadSummary
from agent.errors import NotFound
from agent.testing.memory.messages import Messages
from agent.testing.memory.state import ThreadRow
from agent.testing.memory.unit import unit
from agent.testing.memory.values import ID, exact


class Forks(Messages):
    @unit
    def fork_thread(self, thread_id: str, from_message_id: str) -> ThreadSummary:
        source = self.live_thread(thread_id)
        if source is None:
            raise NotFound("There is no such thread.")
        messages = copied_part(self.in_seq(thread_id), from_message_id)
        fork = self._fork_row(source, len(messages))
        self._copy_messages(fork, messages)
        return self.summary(fork)

    def _fork_row(self, source: ThreadRow, messages: int) -> ThreadRow:
        now = self.clock()
        row = replace(
            source,
            id=self.new_id(),
            external_id=None,
            transient=False,
            active_run_id=None,
            queue_pause=None,
            last_seq=messages,
            created_at=now,
            updated_at=now,
        )
        return self.threads.put(row.id, row)

    def _copy_messages(self, fork: ThreadRow, messages: Sequence[Message]) -> None:
        calls = {
            message.id: in_call_order(self.calls[key] for key in self.calls_of_message.keys(message.id))
            for message in messages
        }
        message_ids: dict[str, str] = {}
        call_ids: dict[str, str] = {}
        for message in messages:
            message_ids[message.id] = self.new_id()
            call_ids.update({call.id: self.new_id() for call in calls[message.id]})
        for seq, message in enumerate(messages, start=1):
            copy = message_copy(message, id=message_ids[message.id], thread_id=fork.id, seq=seq, call_ids=call_ids)
            self.messages.put(exact("id", copy.id, ID), copy)
            for call in calls[message.id]:
                row = call_copy(
                    call, thread_id=fork.id, message_ids=message_ids, call_ids=call_ids, now=fork.created_at
                )
                self.calls.put(exact("id", row.id, ID), row)
