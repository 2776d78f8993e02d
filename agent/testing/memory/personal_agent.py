"""Companion `personal_agent` in memory (spec 12, experimental)."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

from agent.domain.clock import epoch_ms
from agent.domain.commands import UNSET
from agent.domain.ids import new_id as default_id
from agent.domain.personal import (
    ASKING,
    Claim,
    Conversation,
    ConversationPatch,
    ConversationStatus,
    Event,
    Json,
    NewConversation,
    event_id,
    seq_of,
)
from agent.errors import CursorExpired, Invalid, NotFound
from agent.testing.memory.unit import Table, UnitOfWork, unit
from agent.testing.memory.values import HASH, ID, NAME, REF, WORD, copied, exact

_LENGTHS = {
    **dict.fromkeys(("client_id", "user_id", "account_ref"), REF),
    **dict.fromkeys(("thread_id", "parent_id", "open_direct_id"), ID),
    **dict.fromkeys(("agent_name", "responder"), NAME),
    "status": WORD,
}


CLOSED = ConversationStatus.CLOSED


class InMemoryPersonalAgent(UnitOfWork):
    """A `PersonalAgentStore` of one process."""

    def __init__(
        self,
        *,
        clock: Callable[[], datetime] | None = None,
        new_id: Callable[[], str] | None = None,
        beside: UnitOfWork | None = None,
    ) -> None:
        super().__init__(beside)
        self.clock = clock or (lambda: datetime.now(UTC))
        self.new_id = new_id or default_id
        self.conversations: Table[str, Conversation] = Table(self._log)
        self.events: Table[str, Event] = Table(self._log)
        self.events_of = self.events.index(lambda row: row.conversation_id)
        self.messages: Table[tuple[str, str], tuple[str, str | None, Json | None]] = Table(self._log)

    @unit
    def create_conversation(self, new: NewConversation) -> Conversation:
        now = self.clock()
        row = Conversation(
            id=self.new_id(),
            **_kept({each.name: getattr(new, each.name) for each in fields(new)}),
            active_run_id=None,
            turn_seq=0,
            reader_holder=None,
            reader_until_ms=None,
            pruned_seq=0,
            created_at=now,
            updated_at=now,
        )
        return _copy(self.conversations.put(row.id, row))

    @unit
    def get_conversation(self, conversation_id: str) -> Conversation | None:
        row = self.conversations.get(conversation_id)
        return None if row is None else _copy(row)

    @unit
    def list_conversations(self, client_id: str, user_id: str, limit: int = 50) -> list[Conversation]:
        found = [row for row in self.conversations if (row.client_id, row.user_id) == (client_id, user_id)]
        found.sort(key=lambda row: row.id)
        found.sort(key=lambda row: row.updated_at, reverse=True)
        return [_copy(row) for row in found[: max(limit, 0)]]

    @unit
    def conversations_of_thread(self, thread_id: str) -> list[Conversation]:
        found = sorted((row for row in self.conversations if row.thread_id == thread_id), key=lambda row: row.id)
        return [_copy(row) for row in found]

    @unit
    def waiting_conversations(self, limit: int = 100) -> list[str]:
        idle = [row for row in self.conversations if row.active_run_id is None and row.status != CLOSED]
        idle = [row for row in idle if self._asking(row) is not None]
        idle.sort(key=lambda row: (row.updated_at, row.id))
        return [row.id for row in idle[: max(limit, 0)]]

    @unit
    def update_conversation(self, conversation_id: str, patch: ConversationPatch) -> Conversation | None:
        seen = self.conversations.get(conversation_id)
        values = {each.name: getattr(patch, each.name) for each in fields(patch)}
        changes = {name: value for name, value in values.items() if value is not UNSET}
        if seen is None or not changes:
            return self.get_conversation(conversation_id)
        if "context" in changes:
            changes["context"] = {**seen.context, **changes["context"]}
        self.conversations.put(seen.id, replace(seen, **_kept(changes), updated_at=self.clock()))
        return self.get_conversation(conversation_id)

    @unit
    def append_event(self, conversation_id: str, kind: str, event: Json, event_key: str | None = None) -> Event:
        conversation = self.conversations.get(conversation_id)
        if conversation is None:
            raise NotFound("There is no such conversation.")
        there = self._in_order(conversation_id)
        for known in there:
            if event_key is not None and known.event_key == event_key:
                return replace(known, event=copied(known.event))
        seq = max(there[-1].seq if there else 0, conversation.pruned_seq) + 1
        row = Event(
            id=event_id(seq, secrets.token_hex(8)),
            conversation_id=conversation_id,
            seq=seq,
            type=exact("type", kind, NAME),
            event=copied(event),
            event_key=exact("event_key", event_key, REF),
            created_at=self.clock(),
        )
        self.events.put(row.id, row)
        self.conversations.put(conversation_id, replace(conversation, updated_at=row.created_at))
        return replace(row, event=copied(event))

    @unit
    def events_after(self, conversation_id: str, cursor: str | None, limit: int = 100) -> list[Event]:
        conversation, seen = self.conversations.get(conversation_id), 0
        if cursor is not None:
            seen, named = seq_of(cursor), self.events.get(cursor)
            if named is not None and named.conversation_id != conversation_id:
                raise Invalid.field("cursor", "an event of this conversation")
            if conversation is not None and seen <= conversation.pruned_seq:
                raise CursorExpired
            if conversation is not None and named is None:
                raise Invalid.field("cursor", "an event of this conversation")
        later = [row for row in self._in_order(conversation_id) if row.seq > seen]
        return [replace(row, event=copied(row.event)) for row in later[: max(limit, 0)]]

    @unit
    def take_turn(self, conversation_id: str, run_id: str) -> Event | None:
        row = self.conversations.get(conversation_id)
        if row is None or row.active_run_id is not None:
            return None
        event = self._asking(row)
        if event is None:
            return None
        taken = replace(row, active_run_id=exact("active_run_id", run_id, ID), turn_seq=event.seq)
        self.conversations.put(row.id, taken)
        return replace(event, event=copied(event.event))

    @unit
    def finish_turn(self, conversation_id: str, run_id: str) -> bool:
        row = self.conversations.get(conversation_id)
        if row is None or row.active_run_id != run_id:
            return False
        self.conversations.put(row.id, replace(row, active_run_id=None))
        return True

    @unit
    def claim_reader(self, conversation_id: str, holder: str, until_ms: int) -> bool:
        row = self.conversations.get(conversation_id)
        if row is None or not (
            row.reader_holder in (None, holder) or (row.reader_until_ms or 0) <= epoch_ms(self.clock())
        ):
            return False
        held = replace(row, reader_holder=exact("reader_holder", holder, REF), reader_until_ms=until_ms)
        self.conversations.put(row.id, held)
        return True

    @unit
    def release_reader(self, conversation_id: str, holder: str) -> bool:
        row = self.conversations.get(conversation_id)
        if row is None or row.reader_holder != holder:
            return False
        self.conversations.put(row.id, replace(row, reader_holder=None, reader_until_ms=None))
        return True

    @unit
    def prune_events(self, conversation_id: str, up_to_seq: int) -> int:
        row = self.conversations.get(conversation_id)
        if row is None or (seq := min(up_to_seq, row.turn_seq)) <= row.pruned_seq:
            return 0
        gone = [event.id for event in self._in_order(conversation_id) if event.seq <= seq]
        for event_key in gone:
            self.events.drop(event_key)
        self.conversations.put(row.id, replace(row, pruned_seq=seq))
        return len(gone)

    @unit
    def claim_message(
        self, owner: str, message_id: str, fingerprint: str, *, conversation_id: str | None = None
    ) -> Claim:
        place = (exact("owner", owner, REF), exact("message_id", message_id, REF))
        exact("fingerprint", fingerprint, HASH)
        known = self.messages.get(place)
        if known is None:
            self.messages.put(place, (fingerprint, exact("conversation_id", conversation_id, ID), None))
            return Claim(state="new")
        if known[0] != fingerprint:
            return Claim(state="mismatch")
        return Claim(state="in_progress") if known[2] is None else Claim(state="done", response=copied(known[2]))

    @unit
    def complete_message(
        self, owner: str, message_id: str, response: Json, *, conversation_id: str | None = None
    ) -> bool:
        known = self.messages.get((owner, message_id))
        if known is None or known[2] is not None:
            return False
        of = known[1] if conversation_id is None else exact("conversation_id", conversation_id, ID)
        self.messages.put((owner, message_id), (known[0], of, copied(response)))
        return True

    @unit
    def release_message(self, owner: str, message_id: str) -> bool:
        known = self.messages.get((owner, message_id))
        if known is None or known[2] is not None:
            return False
        self.messages.drop((owner, message_id))
        return True

    @unit
    def erase_user(self, user_id: str) -> int:
        theirs = {row.id for row in self.conversations if row.user_id == user_id}
        for place in [place for place, row in self.messages.items() if row[1] in theirs]:
            self.messages.drop(place)
        for conversation_id in theirs:
            for event in self._in_order(conversation_id):
                self.events.drop(event.id)
            self.conversations.drop(conversation_id)
        return len(theirs)

    def _asking(self, row: Conversation) -> Event | None:
        later = (event for event in self._in_order(row.id) if event.seq > row.turn_seq)
        return next((event for event in later if event.type in ASKING), None)

    def _in_order(self, conversation_id: str) -> list[Event]:
        return [self.events[key] for key in self.events_of.keys(conversation_id)]


def _kept(values: dict[str, Any]) -> dict[str, Any]:
    """What the columns make of these values."""
    return {
        name: exact(name, value, _LENGTHS[name]) if name in _LENGTHS else copied(value)
        for name, value in values.items()
    }


def _copy(row: Conversation) -> Conversation:
    return replace(row, context=copied(row.context), grant_info=copied(row.grant_info))
