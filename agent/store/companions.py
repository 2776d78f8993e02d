"""What keeps something in a store's stead (spec 02 §2): named by a path on the store's class, made once."""

from __future__ import annotations

from functools import cache
from typing import cast

from agent.conf import resolved
from agent.store.base import AgentStore
from agent.store.proposals import ConfirmTokenStore

CONFIRM_TOKENS = "confirm_tokens"


def remembers_tokens(store: object) -> bool:
    """Whether a store, or its class, has somebody who knows which confirm tokens were used."""
    return bool(getattr(store, CONFIRM_TOKENS, None)) or CONFIRM_TOKENS in getattr(store, "capabilities", ())


def token_store(store: AgentStore) -> ConfirmTokenStore | None:
    """Where used confirm tokens are kept: the store's companion, else the store itself if it can; None: nowhere."""
    path = getattr(store, CONFIRM_TOKENS, None)
    if path is not None:
        return cast(ConfirmTokenStore, _made(path))
    return store if CONFIRM_TOKENS in store.capabilities else None


@cache
def _made(path: object) -> object:
    found = resolved(f"STORE.{CONFIRM_TOKENS}", path)
    return found() if isinstance(found, type) else found
