"""Companion `personal_agent` on the site's database (spec 12, experimental)."""

from __future__ import annotations

import secrets
from dataclasses import fields
from typing import Any

from agent.domain.clock import epoch_ms
from agent.domain.personal import Claim, Conversation, ConversationPatch, Event, Json, NewConversation, event_id, seq_of
from agent.errors import CursorExpired, Invalid, NotFound
from agent.models import PersonalConversation, PersonalEvent, PersonalMessage
from agent.models.erasure import erase
from agent.models.inserts import Insert
from agent.models.personal import PersonalConversationQuerySet, PersonalEventQuerySet, PersonalMessageQuerySet
from agent.store.orm.rows import given
from agent.store.orm.unit import OrmUnit

_CONVERSATION = tuple(each.name for each in fields(Conversation))
_NEW = tuple(each.name for each in fields(NewConversation))
_EVENT = tuple(each.name for each in fields(Event))

_conversation = Insert(PersonalConversation)
_event = Insert(PersonalEvent)
_message = Insert(PersonalMessage)


class OrmPersonalAgent(OrmUnit):
    """A `PersonalAgentStore`; what it writes commits with the unit of work of the store that it accompanies."""

    def create_conversation(self, new: NewConversation) -> Conversation:
        now = self.clock()
        values = {name: getattr(new, name) for name in _NEW}
        values |= {"id": self.new_id(), "created_at": now, "updated_at": now}
        stored = _conversation.one(self.db, _conversation.draft(self.db, values))
        return Conversation(**{name: stored[name] for name in _CONVERSATION})

    def get_conversation(self, conversation_id: str) -> Conversation | None:
        row = self._conversations().filter(pk=conversation_id).values(*_CONVERSATION).first()
        return None if row is None else Conversation(**row)

    def list_conversations(self, client_id: str, user_id: str, limit: int = 50) -> list[Conversation]:
        found = self._conversations().of(client_id, user_id).changed_last().values(*_CONVERSATION)
        return [Conversation(**row) for row in found[: max(limit, 0)]]

    def conversations_of_thread(self, thread_id: str) -> list[Conversation]:
        found = self._conversations().filter(thread_id=thread_id).order_by("id").values(*_CONVERSATION)
        return [Conversation(**row) for row in found]

    def waiting_conversations(self, limit: int = 100) -> list[str]:
        waiting = self._conversations().waiting().order_by("updated_at", "id")
        return list(waiting.values_list("pk", flat=True)[: max(limit, 0)])

    def update_conversation(self, conversation_id: str, patch: ConversationPatch) -> Conversation | None:
        changes = given(patch)
        if not changes:
            return self.get_conversation(conversation_id)
        with self.joined():
            seen = self._locked(conversation_id)
            if seen is None:
                return None
            if "context" in changes:
                changes["context"] = {**seen["context"], **changes["context"]}
            self._conversations().filter(pk=conversation_id).update(**changes, updated_at=self.clock())
            return self.get_conversation(conversation_id)

    def append_event(self, conversation_id: str, kind: str, event: Json, event_key: str | None = None) -> Event:
        with self.joined():
            conversation = self._locked(conversation_id)
            if conversation is None:
                raise NotFound("There is no such conversation.")
            if (known := self._event_at(conversation_id, event_key)) is not None:
                return known
            now, seq = self.clock(), max(self._events().last_seq(conversation_id), conversation["pruned_seq"]) + 1
            values = {
                "id": event_id(seq, secrets.token_hex(8)),
                "conversation_id": conversation_id,
                "seq": seq,
                "type": kind,
                "event": event,
                "event_key": event_key,
                "created_at": now,
            }
            stored = _event.one(self.db, _event.draft(self.db, values))
            self._conversations().filter(pk=conversation_id).update(updated_at=now)
            return Event(**{name: stored[name] for name in _EVENT})

    def _event_at(self, conversation_id: str, event_key: str | None) -> Event | None:
        if event_key is None:
            return None
        row = self._events().filter(conversation_id=conversation_id, event_key=event_key).values(*_EVENT).first()
        return None if row is None else Event(**row)

    def events_after(self, conversation_id: str, cursor: str | None, limit: int = 100) -> list[Event]:
        seen = 0 if cursor is None else seq_of(cursor)
        if cursor is not None and self._events().filter(pk=cursor).exclude(conversation_id=conversation_id).exists():
            raise Invalid.field("cursor", "an event of this conversation")
        found = self._events().after(conversation_id, seen).values(*_EVENT)[: max(limit, 0)]
        events = [Event(**row) for row in found]
        if cursor is not None:
            self._check_cursor(conversation_id, cursor, seen)
        return events

    def _check_cursor(self, conversation_id: str, cursor: str, seen: int) -> None:
        """Asked after the events were read: what is pruned in between would be missing from them."""
        pruned = self._conversations().filter(pk=conversation_id).values_list("pruned_seq", flat=True).first()
        if pruned is None:
            return
        if seen <= pruned:
            raise CursorExpired
        if not self._events().filter(pk=cursor).exists():
            raise Invalid.field("cursor", "an event of this conversation")

    def take_turn(self, conversation_id: str, run_id: str) -> Event | None:
        turns = self._conversations()
        while (seen := self._waiting_for_turn(conversation_id)) is not None:
            asking = self._events().asking().after(conversation_id, seen).values(*_EVENT).first()
            if asking is None:
                return None
            if turns.take_turn(conversation_id, run_id, seen=seen, seq=asking["seq"]):
                return Event(**asking)
        return None

    def _waiting_for_turn(self, conversation_id: str) -> int | None:
        idle = self._conversations().filter(pk=conversation_id, active_run_id=None)
        return idle.values_list("turn_seq", flat=True).first()

    def finish_turn(self, conversation_id: str, run_id: str) -> bool:
        return self._conversations().finish_turn(conversation_id, run_id)

    def claim_reader(self, conversation_id: str, holder: str, until_ms: int) -> bool:
        now_ms = epoch_ms(self.clock())
        return self._conversations().claim_reader(conversation_id, holder, until_ms=until_ms, now_ms=now_ms)

    def release_reader(self, conversation_id: str, holder: str) -> bool:
        return self._conversations().release_reader(conversation_id, holder)

    def prune_events(self, conversation_id: str, up_to_seq: int) -> int:
        with self.joined():
            conversation = self._locked(conversation_id)
            if conversation is None:
                return 0
            seq = min(up_to_seq, conversation["turn_seq"])
            if seq <= conversation["pruned_seq"]:
                return 0
            self._conversations().pruned(conversation_id, seq)
            return erase(self._events().up_to(conversation_id, seq))

    def claim_message(
        self, owner: str, message_id: str, fingerprint: str, *, conversation_id: str | None = None
    ) -> Claim:
        values = {
            "id": self.new_id(),
            "owner": owner,
            "message_id": message_id,
            "fingerprint": fingerprint,
            "conversation_id": conversation_id,
            "created_at": self.clock(),
        }
        draft = _message.draft(self.db, values)
        while _message.new(self.db, draft) is None:
            known = self._messages().named(owner, message_id).values_list("fingerprint", "response").first()
            if known is not None:
                return _claim(fingerprint, *known)
        return Claim(state="new")

    def complete_message(
        self, owner: str, message_id: str, response: Json, *, conversation_id: str | None = None
    ) -> bool:
        of = {} if conversation_id is None else {"conversation_id": conversation_id}
        return self._messages().named(owner, message_id).in_progress().update(response=response, **of) == 1

    def release_message(self, owner: str, message_id: str) -> bool:
        return erase(self._messages().named(owner, message_id).in_progress()) == 1

    def erase_user(self, user_id: str) -> int:
        with self.joined():
            theirs = list(self._conversations().filter(user_id=user_id).values_list("pk", flat=True))
            for conversation_id in theirs:
                erase(self._messages().filter(conversation_id=conversation_id))
                erase(self._events().filter(conversation_id=conversation_id))
                erase(self._conversations().filter(pk=conversation_id))
            return len(theirs)

    def _locked(self, conversation_id: str) -> dict[str, Any] | None:
        """What writers of one conversation stand in line at."""
        held = self._conversations().select_for_update().filter(pk=conversation_id)
        row = held.values("context", "turn_seq", "pruned_seq").first()
        return None if row is None else {**row}

    def _conversations(self) -> PersonalConversationQuerySet:
        return PersonalConversation.objects.using(self.db)

    def _events(self) -> PersonalEventQuerySet:
        return PersonalEvent.objects.using(self.db)

    def _messages(self) -> PersonalMessageQuerySet:
        return PersonalMessage.objects.using(self.db)


def _claim(fingerprint: str, known: str, response: Json | None) -> Claim:
    if fingerprint != known:
        return Claim(state="mismatch")
    return Claim(state="in_progress") if response is None else Claim(state="done", response=response)
