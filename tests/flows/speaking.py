"""An assistant of Alice's that speaks with an agent of the site, and what a test looks at when it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.domain.actor import Actor
from agent.domain.personal import Connection, Conversation, NewConnection
from agent.domain.runs import Run
from agent.flows import personal
from agent.flows.personal import Delivered
from agent.registry import agent
from agent.store import get_store
from agent.store.companions import personal_agent_store, personal_connection_store
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]
ON: dict[str, Any] = {"PERSONAL_AGENT": True, "BACKGROUND_ACTOR_RESOLVER": "tests.flows.speaking.Today"}


class Today:
    """Everybody is active, but who left; and one of them nobody can say anything about."""

    def resolve(self, ref: str, tenant_ref: str | None) -> Actor | None:
        if ref == "unknown":
            raise RuntimeError("the directory is down")
        return None if ref == "gone" else Actor(ref, ("today",), tenant_ref)


def connected(user_id: str = "alice", client_id: str = "assistant") -> Connection:
    made = NewConnection(client_id=client_id, user_id=user_id, scopes=["ask"])
    return personal_connection_store(get_store()).connect(made)


def delivered(connection: Connection, text: str = "Where is it?", message_id: str = "m1", **more: Any) -> str:
    """The id of the conversation that the message is in."""
    more.setdefault("agent", "desk")
    answer = personal.deliver(connection, Delivered(message_id=message_id, text=text, **more))
    assert answer["status"] == 202
    return str(answer["body"]["conversationId"])


def told(connection: Connection, conversation_id: str) -> list[tuple[str, Any]]:
    """The events as pairs of type and what matters of it."""
    events = personal.read(connection, conversation_id)
    return [(one.type, one.event.get("text", one.event.get("code", one.event.get("decision")))) for one in events]


def now(conversation_id: str) -> Conversation:
    found = personal_agent_store(get_store()).get_conversation(conversation_id)
    assert found is not None
    return found


def at_work(desk: Site, conversation_id: str) -> Run:
    run = desk.store.get_run(now(conversation_id).active_run_id or "")
    assert run is not None
    return run


def desk_of(site: MakeSite, *answers: Any, **settings: Any) -> Site:
    """The site with an agent that says these answers, one after another."""
    agent(name="desk", prompt="p", tools=[])(type("Desk", (), {}))
    return site(list(answers or ("Here.",)), **ON, **settings)
