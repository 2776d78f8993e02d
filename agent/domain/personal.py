"""Personal agents of people (spec 12, experimental): conversations with ours, their events, what they may do."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal

from agent.domain.commands import UNSET, Unset
from agent.errors import Invalid

Json = dict[str, Any]

DIGITS: Final = string.digits + string.ascii_lowercase
MESSAGE_RECEIVED: Final = "message-received"
ASKING: Final = frozenset({MESSAGE_RECEIVED})  # the types of events that ask for an answer


class ConversationStatus(StrEnum):
    OPEN = "open"
    WAITING = "waiting"  # for a person
    CLOSED = "closed"


class ConnectionStatus(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    REVOKED = "revoked"


# A revoked connection comes back by connecting again alone, which gives it a new token.
CONNECTION_MOVES: Final[Mapping[str, frozenset[ConnectionStatus]]] = {
    ConnectionStatus.PENDING: frozenset({ConnectionStatus.ACTIVE, ConnectionStatus.REVOKED}),
    ConnectionStatus.ACTIVE: frozenset({ConnectionStatus.REVOKED}),
}


def before(new: str) -> list[str]:
    """The states of a connection from which there is a way to this one."""
    return [seen for seen, ways in CONNECTION_MOVES.items() if new in ways]


def event_id(seq: int, random: str) -> str:
    """The id of an event, which is the cursor of who has read it: its number can be told when it is gone."""
    return f"evt_{_base36(seq)}_{random}"


def seq_of(cursor: str) -> int:
    """The number in the id of an event; `Invalid` for anything else."""
    word, _, rest = cursor.partition("_")
    number, _, random = rest.partition("_")
    if word != "evt" or not random or not number or len(number) > 13 or set(number) - set(DIGITS):
        raise Invalid.field("cursor", "the id of an event")
    return int(number, 36)


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, place = divmod(number, 36)
        digits = DIGITS[place] + digits
    return digits or "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConversation:
    """A conversation to begin."""

    client_id: str
    user_id: str
    agent_name: str
    account_ref: str | None = None
    thread_id: str | None = None
    parent_id: str | None = None
    open_direct_id: str | None = None
    status: str = ConversationStatus.OPEN
    responder: str | None = None
    context: Json = field(default_factory=dict)
    grant_info: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPatch:
    """What changes of a conversation; the keys of `context` are laid over those that are there."""

    agent_name: str | Unset = UNSET
    account_ref: str | Unset | None = UNSET
    thread_id: str | Unset | None = UNSET
    parent_id: str | Unset | None = UNSET
    open_direct_id: str | Unset | None = UNSET
    status: str | Unset = UNSET
    responder: str | Unset | None = UNSET
    context: Json | Unset = UNSET
    grant_info: Json | Unset | None = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation as it is kept."""

    id: str
    client_id: str
    user_id: str
    account_ref: str | None
    agent_name: str
    thread_id: str | None
    parent_id: str | None
    open_direct_id: str | None
    status: str
    responder: str | None
    context: Json
    active_run_id: str | None
    turn_seq: int
    grant_info: Json | None
    reader_holder: str | None
    reader_until_ms: int | None
    pruned_seq: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry of a conversation's log."""

    id: str
    conversation_id: str
    seq: int
    type: str
    event: Json
    event_key: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Whose it is to handle a delivered message: `new` says the caller's."""

    state: Literal["new", "in_progress", "done", "mismatch"]
    response: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConnection:
    """What one client may do for one person from now on; its token is known by its hash alone."""

    client_id: str
    user_id: str
    scopes: list[str]
    account_ref: str | None = None
    status: str = ConnectionStatus.ACTIVE
    token_hash: str | None = None
    token_expires_at: datetime | None = None
    metadata: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A connection as it is kept."""

    id: str
    client_id: str
    user_id: str
    account_ref: str | None
    status: str
    scopes: list[str]
    token_hash: str | None
    token_expires_at: datetime | None
    metadata: Json | None
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None
