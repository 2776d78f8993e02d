"""Which client may speak for whom, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from agent.domain.personal import NewConnection
from agent.errors import Conflict, CursorExpired, NotAllowed, NotAuthenticated, NotFound, NotSupported
from agent.flows import personal
from agent.registry import agent
from agent.store import get_store
from agent.store.companions import personal_agent_store, personal_connection_store
from tests.flows.conftest import Site
from tests.flows.speaking import MakeSite, at_work, connected, delivered, desk_of, now, told

TOKEN = "a token"


@pytest.fixture
def desk(site: MakeSite) -> Callable[..., Site]:
    return partial(desk_of, site)


def test_a_token_opens_its_connection_until_it_is_revoked(desk: Callable[..., Site]) -> None:
    desk()
    allowed = personal_connection_store(get_store())
    new = NewConnection(client_id="assistant", user_id="alice", scopes=[], token_hash=personal.hash_of(TOKEN))
    allowed.connect(new)
    assert personal.authenticate(TOKEN).user_id == "alice"
    used = allowed.get("assistant", "alice")
    assert used is not None
    assert used.last_used_at is not None
    allowed.revoke("assistant", "alice")
    for token in (TOKEN, "", "another", "\ud800"):
        with pytest.raises(NotAuthenticated):
            personal.authenticate(token)


def test_conversations_are_of_one_client_for_one_person(desk: Callable[..., Site]) -> None:
    desk()
    assistant = connected()
    conversation_id = delivered(assistant)
    for other in (connected("bo"), connected(client_id="other")):
        for act in (personal.read, personal.close):
            with pytest.raises(NotAllowed):
                act(other, conversation_id)
        with pytest.raises(NotAllowed):
            delivered(other, conversation_id=conversation_id)
    with pytest.raises(NotFound):
        personal.read(assistant, "nobody")


def test_a_closed_conversation_takes_no_message(desk: Callable[..., Site]) -> None:
    here, assistant = desk(), connected()
    conversation_id = delivered(assistant)
    run = at_work(here, conversation_id)
    personal.close(assistant, conversation_id)
    personal.close(assistant, conversation_id)
    with pytest.raises(Conflict):
        delivered(assistant, "More", "m2", conversation_id=conversation_id)
    here.drive(run.id)
    assert told(assistant, conversation_id)[1:] == [("closed", None), ("message", "Here.")]
    assert now(conversation_id).status == "closed"


def test_who_reads_from_a_pruned_event_is_told(desk: Callable[..., Site]) -> None:
    here, assistant = desk(), connected()
    conversation_id = delivered(assistant)
    here.drive(at_work(here, conversation_id).id)
    received, answered = personal.read(assistant, conversation_id)
    assert personal.read(assistant, conversation_id, received.id) == [answered]
    personal_agent_store(here.store).prune_events(conversation_id, received.seq)
    with pytest.raises(CursorExpired):
        personal.read(assistant, conversation_id, received.id)


def test_nothing_of_it_is_there_while_it_is_off(site: MakeSite) -> None:
    agent(name="desk", prompt="p", tools=[])(type("Desk", (), {}))
    here = site(["Here."])
    with pytest.raises(NotSupported):
        connected()
    with pytest.raises(NotSupported):
        personal.authenticate(TOKEN)
    assert here.turn("Hello").status == "completed"
    assert personal.go_on() == 0
