"""What keeps something in a store's stead (spec 02 §2): named by a path on the store's class, made once."""

from __future__ import annotations

from functools import cache
from typing import cast

from agent.conf import agent_settings, resolved
from agent.errors import NotSupported
from agent.store.base import AgentStore
from agent.store.personal import PersonalAgentConnectionStore, PersonalAgentStore
from agent.store.proposals import ConfirmTokenStore

CONFIRM_TOKENS = "confirm_tokens"
PERSONAL_AGENT = "personal_agent"
PERSONAL_AGENT_CONNECTIONS = "personal_agent_connections"
PERSONAL_COMPANIONS = (PERSONAL_AGENT, PERSONAL_AGENT_CONNECTIONS)


def remembers_tokens(store: object) -> bool:
    """Whether a store, or its class, has somebody who knows which confirm tokens were used."""
    return bool(getattr(store, CONFIRM_TOKENS, None)) or CONFIRM_TOKENS in getattr(store, "capabilities", ())


def token_store(store: AgentStore) -> ConfirmTokenStore | None:
    """Where used confirm tokens are kept: the store's companion, else the store itself if it can; None: nowhere."""
    found = _companion(store, CONFIRM_TOKENS)
    if found is not None:
        return cast(ConfirmTokenStore, found)
    return store if CONFIRM_TOKENS in store.capabilities else None


def personal_agent_store(store: AgentStore) -> PersonalAgentStore:
    """Where conversations of people's own agents are kept; `NotSupported` where they are off, or nobody keeps them."""
    return cast(PersonalAgentStore, _switched_on(store, PERSONAL_AGENT))


def personal_connection_store(store: AgentStore) -> PersonalAgentConnectionStore:
    """Where it is kept which client may speak for whom; `NotSupported` as above."""
    return cast(PersonalAgentConnectionStore, _switched_on(store, PERSONAL_AGENT_CONNECTIONS))


def personal_companions(store: AgentStore) -> list[PersonalAgentStore | PersonalAgentConnectionStore]:
    """What the store has of them, switched on or not: what was kept once has to be found when it is to go."""
    found = (_companion(store, name) for name in PERSONAL_COMPANIONS)
    return [cast(PersonalAgentStore | PersonalAgentConnectionStore, one) for one in found if one is not None]


def _switched_on(store: AgentStore, name: str) -> object:
    found = _companion(store, name) if agent_settings().personal_agent else None
    if found is None:
        raise NotSupported("Agents of people's own are not served here.")
    return found


def _companion(store: AgentStore, name: str) -> object | None:
    named = getattr(store, name, None)
    return _made(name, named) if isinstance(named, str | type) else named


@cache
def _made(name: str, named: object) -> object:
    found = resolved(f"STORE.{name}", named)
    return found() if isinstance(found, type) else found
