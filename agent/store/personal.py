"""The promise of the stores about personal agents of people (spec 12): experimental, it may change in any release.

Both are companions of a store: what is written within a unit of work of that store commits with it. They are
synchronous, take and give frozen values, and answer None, False, 0 or an empty list for what is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from agent.domain.personal import (
    Claim,
    Connection,
    Conversation,
    ConversationPatch,
    Event,
    Json,
    NewConnection,
    NewConversation,
)


class PersonalAgentStore(Protocol):
    """Companion `personal_agent`: conversations, the log of their events, messages that were delivered."""

    clock: Callable[[], datetime]  # aware, UTC; tests set it

    def create_conversation(self, new: NewConversation) -> Conversation: ...
    def get_conversation(self, conversation_id: str) -> Conversation | None: ...

    def list_conversations(self, client_id: str, user_id: str, limit: int = 50) -> list[Conversation]:
        """Those of one client for one person: changed last first, then by id."""

    def conversations_of_thread(self, thread_id: str) -> list[Conversation]:
        """Those whose answers this thread holds, by id."""

    def waiting_conversations(self, limit: int = 100) -> list[str]:
        """Those that are not closed, where something asks for an answer and no run is at work; changed first first."""

    def update_conversation(self, conversation_id: str, patch: ConversationPatch) -> Conversation | None:
        """What the patch leaves out is untouched; `context` is merged by key. An empty patch writes nothing."""

    def append_event(self, conversation_id: str, kind: str, event: Json, event_key: str | None = None) -> Event:
        """The next number under the conversation's lock; a key that is known answers the event it stands at.

        `NotFound` for an unknown conversation.
        """

    def events_after(self, conversation_id: str, cursor: str | None, limit: int = 100) -> list[Event]:
        """Those behind the event that the cursor names, in order; None: from the first that is kept.

        `CursorExpired` for one at or below what was pruned; `Invalid` for one of another conversation, or of none.
        """

    def take_turn(self, conversation_id: str, run_id: str) -> Event | None:
        """The next event that asks for an answer becomes this run's, unless a run is at work; both or neither."""

    def finish_turn(self, conversation_id: str, run_id: str) -> bool:
        """The run is no longer at work; False, and nothing changed, when it was not."""

    def claim_reader(self, conversation_id: str, holder: str, until_ms: int) -> bool:
        """Hold the right to write the reply: where nobody does, this holder does, or the holder's time is over."""

    def release_reader(self, conversation_id: str, holder: str) -> bool: ...

    def prune_events(self, conversation_id: str, up_to_seq: int) -> int:
        """Remove the events up to this number, and none that no turn has passed yet; how many."""

    def claim_message(
        self, owner: str, message_id: str, fingerprint: str, *, conversation_id: str | None = None
    ) -> Claim:
        """One caller gets `new`, the others `in_progress` or what it was answered; `mismatch` for another content."""

    def complete_message(
        self, owner: str, message_id: str, response: Json, *, conversation_id: str | None = None
    ) -> bool:
        """Keep the answer (`{status, body}`) of a message that is in progress, and its conversation if given."""

    def release_message(self, owner: str, message_id: str) -> bool:
        """Forget a message that is in progress, so that it may be delivered again."""

    def erase_user(self, user_id: str) -> int:
        """Remove the person's conversations with their events and messages; how many conversations."""


class PersonalAgentConnectionStore(Protocol):
    """Companion `personal_agent_connections`: which client may speak for whom. Of a token only the hash is kept."""

    clock: Callable[[], datetime]

    def connect(self, new: NewConnection) -> Connection:
        """The connection of this client and person, new or taken up again: the earlier token is worth nothing.

        `Conflict` when the token is another connection's.
        """

    def get(self, client_id: str, user_id: str) -> Connection | None: ...

    def by_token_hash(self, token_hash: str) -> Connection | None:
        """The active connection with this token, until the token expires."""

    def touch(self, connection_id: str) -> bool:
        """It was used now."""

    def set_status(self, connection_id: str, status: str) -> bool:
        """`pending` becomes `active`, both `revoked`; any other move is False. What is revoked loses its token."""

    def revoke(self, client_id: str, user_id: str) -> bool: ...

    def list_for_user(self, user_id: str) -> list[Connection]:
        """A person's connections, by id."""

    def erase_user(self, user_id: str) -> int:
        """Remove the person's connections; how many."""
