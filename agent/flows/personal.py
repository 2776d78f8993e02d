"""A person's own agent speaks with one of ours (spec 12 §5, experimental): delivered, taken up in turn, read again."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import cast

from agent.conf import agent_settings
from agent.domain.actor import Actor, Owner
from agent.domain.canonical import canonical_json
from agent.domain.ids import new_id
from agent.domain.personal import (
    MESSAGE_RECEIVED,
    Connection,
    Conversation,
    ConversationPatch,
    ConversationStatus,
    Event,
    Json,
    NewConversation,
)
from agent.domain.redaction import redacted_trace
from agent.domain.text import is_blank
from agent.errors import (
    AgentError,
    Conflict,
    IdempotencyKeyReused,
    Invalid,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    RunActive,
)
from agent.flows import dispatch
from agent.flows.admission import chat
from agent.flows.starts import Send
from agent.spi import BackgroundActorResolver
from agent.store import get_store
from agent.store.base import AgentStore
from agent.store.companions import PERSONAL_AGENT, personal_agent_store, personal_connection_store
from agent.store.personal import PersonalAgentStore

logger = logging.getLogger("agent.personal")

ACCEPTED = 202


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A message of a personal agent; `conversation_id` None begins a conversation with `agent`."""

    message_id: str
    text: str
    conversation_id: str | None = None
    agent: str | None = None
    context: Json = field(default_factory=dict)


def authenticate(token: str) -> Connection:
    """The connection of who shows this token; `NotAuthenticated` for a token of nobody, expired or revoked."""
    connections = personal_connection_store(get_store())
    found = connections.by_token_hash(hash_of(token))
    if found is None:
        raise NotAuthenticated
    connections.touch(found.id)
    return found


def hash_of(token: str) -> str:
    """What is stored of a token."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def deliver(connection: Connection, message: Delivered, *, tenant_ref: str | None = None) -> Json:
    """Append the message to its conversation, once, and let it be answered: `{status, body}`, also when it is repeated.

    Raises `IdempotencyKeyReused` for the same id with another content, `RunActive` while the first delivery is at work,
    `NotFound` and `NotAllowed` for conversations that are not this connection's, `Conflict` for closed ones.
    """
    store = get_store()
    personal = personal_agent_store(store)
    if is_blank(message.text):
        raise Invalid("The message is empty.", code="empty_message")
    with store.atomic():
        known = _claimed(personal, connection, message)
        return known or _received(store, personal, connection, message, tenant_ref)


def _claimed(personal: PersonalAgentStore, connection: Connection, message: Delivered) -> Json | None:
    """None when it is ours to handle, else what it was answered."""
    said = [message.conversation_id, message.agent, message.text, message.context]
    fingerprint = sha256(canonical_json(said).encode()).hexdigest()
    claim = personal.claim_message(
        connection.id, message.message_id, fingerprint, conversation_id=message.conversation_id
    )
    if claim.state == "mismatch":
        raise IdempotencyKeyReused
    if claim.state == "in_progress":
        raise RunActive("This message is being taken in.")
    return claim.response


def _received(
    store: AgentStore,
    personal: PersonalAgentStore,
    connection: Connection,
    message: Delivered,
    tenant_ref: str | None,
) -> Json:
    grant: Json = {
        "actor": {"ref": connection.user_id, "tenantRef": tenant_ref},
        "scopes": connection.scopes,
        "signedIn": True,
    }
    conversation = _conversation(personal, connection, message, grant)
    told = {"messageId": message.message_id, "text": message.text}
    event = personal.append_event(conversation.id, MESSAGE_RECEIVED, told, message.message_id)
    response: Json = {"status": ACCEPTED, "body": {"conversationId": conversation.id, "eventId": event.id}}
    personal.complete_message(connection.id, message.message_id, response, conversation_id=conversation.id)
    store.on_commit(partial(dispatch.personal, conversation.id))
    return response


def _conversation(
    personal: PersonalAgentStore, connection: Connection, message: Delivered, grant: Json
) -> Conversation:
    if message.conversation_id is None:
        if message.agent is None:
            raise Invalid.field("agent", "the name of an agent")
        begun = NewConversation(
            client_id=connection.client_id,
            user_id=connection.user_id,
            account_ref=connection.account_ref,
            agent_name=message.agent,
            context=message.context,
            grant_info=grant,
        )
        return personal.create_conversation(begun)
    known = own(connection, message.conversation_id)
    if known.status == ConversationStatus.CLOSED:
        raise Conflict("This conversation is closed.")
    personal.update_conversation(known.id, ConversationPatch(context=message.context, grant_info=grant))
    return known


def own(connection: Connection, conversation_id: str) -> Conversation:
    """A conversation of this client for this person; `NotFound` and `NotAllowed` otherwise."""
    found = personal_agent_store(get_store()).get_conversation(conversation_id)
    if found is None:
        raise NotFound
    if (found.client_id, found.user_id) != (connection.client_id, connection.user_id):
        raise NotAllowed
    return found


def read(connection: Connection, conversation_id: str, cursor: str | None = None, *, limit: int = 100) -> list[Event]:
    """The events behind the cursor; `CursorExpired` when that is pruned."""
    return personal_agent_store(get_store()).events_after(own(connection, conversation_id).id, cursor, limit)


def close(connection: Connection, conversation_id: str) -> None:
    """No further message is taken; a run that is at work ends by itself."""
    store = get_store()
    personal = personal_agent_store(store)
    with store.atomic():
        known = own(connection, conversation_id)
        personal.update_conversation(known.id, ConversationPatch(status=ConversationStatus.CLOSED))
        personal.append_event(known.id, "closed", {}, "closed")


# ---- turns -------------------------------------------------------------------------------------------------------


def advance(conversation_id: str) -> bool:
    """Begin with the next message that asks for an answer; False where none does, or the thread is busy.

    A message that cannot be answered is told as `failed`, and the one behind it has its turn.
    """
    store = get_store()
    personal = personal_agent_store(store)
    while True:
        conversation = personal.get_conversation(conversation_id)
        if conversation is None or conversation.status == ConversationStatus.CLOSED:
            return False
        actor, run_id = _today(conversation), new_id()
        try:
            with store.atomic():
                if conversation.thread_id is not None and "queue" in store.capabilities:
                    store.lock_thread(conversation.thread_id)  # rows are locked in one order: the thread's comes first
                event = personal.take_turn(conversation_id, run_id)
                if event is None:
                    return False
                if _begun(personal, conversation, event, actor, run_id):
                    return True
        except RunActive:  # nothing was taken up: the run that frees the thread lets this go on
            return False


def _begun(
    personal: PersonalAgentStore, conversation: Conversation, event: Event, actor: Actor | None, run_id: str
) -> bool:
    """Send it as its person in the conversation's thread; False where that cannot be, which is told."""
    send = Send(message=event.event["text"], thread_id=conversation.thread_id, agent=conversation.agent_name)
    try:
        if actor is None:
            raise NotAuthenticated("The person is not active any more.")
        with get_store().atomic():
            started = chat(actor, send, run_id=run_id)
    except RunActive:
        raise
    except AgentError as error:
        personal.append_event(conversation.id, "failed", {"code": error.code, "eventId": event.id}, f"{run_id}:over")
        personal.finish_turn(conversation.id, run_id)
        return False
    personal.update_conversation(conversation.id, ConversationPatch(thread_id=started.thread_id))
    return True


def _today(conversation: Conversation) -> Actor | None:
    """Who the person is by now, with the roles of today; None where nobody may act for them any more."""
    named = (conversation.grant_info or {}).get("actor") or {}
    asked = Owner(conversation.user_id, named.get("tenantRef"))
    resolver = cast("BackgroundActorResolver", agent_settings().background_actor_resolver)
    try:
        actor = resolver.resolve(asked.ref, asked.tenant_ref)
    except Exception as error:
        logger.warning(
            "the person of conversation %s could not be resolved: %s", conversation.id, redacted_trace(error)
        )
        return None
    return actor if actor is not None and actor.same_as(asked) else None


def go_on(limit: int = 100) -> int:
    """Let conversations go on whose hand-over was lost; how many."""
    store = get_store()
    if not agent_settings().personal_agent or getattr(store, PERSONAL_AGENT, None) is None:
        return 0
    waiting = personal_agent_store(store).waiting_conversations(limit)
    return sum(advance(conversation_id) for conversation_id in waiting)
