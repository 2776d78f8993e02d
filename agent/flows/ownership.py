"""Whose a row is: another's is refused, an unknown one is not found, and neither answer tells anything about it."""

from __future__ import annotations

from agent.domain.actor import Actor
from agent.domain.snapshots import ThreadScope
from agent.errors import NotAllowed, NotFound
from agent.store.base import AgentStore


def own_thread(store: AgentStore, actor: Actor, thread_id: str) -> ThreadScope:
    """The scope of a live thread of the actor's own."""
    scope = store.thread_scope(thread_id)
    if scope is None or scope.deleted:
        raise NotFound
    if not actor.same_as(scope.owner):
        raise NotAllowed
    return scope
