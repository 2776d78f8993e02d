"""Personal agents' stores keep every published promise, in memory and on the database of this leg."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connections

from agent.domain.personal import Claim, Connection, ConversationPatch, Event, Json
from agent.errors import NotSupported
from agent.store import OrmStore
from agent.store.companions import personal_agent_store, personal_connection_store
from agent.store.orm.personal_agent import OrmPersonalAgent
from agent.store.orm.personal_connections import OrmPersonalConnections
from agent.testing import InMemoryPersonalAgent, InMemoryPersonalConnections, InMemoryStore
from agent.testing.contracts import (
    PERSONAL_AGENT_CONNECTION_STORE_CONTRACT,
    PERSONAL_AGENT_STORE_CONTRACT,
    CompanionSubject,
    ConnectionCase,
    ContractMismatch,
    PersonalAgentCase,
)
from tests.notebook import NotebookStore


def on_database(cases: list[Any]) -> list[Any]:
    return [pytest.param(one, id=one.name, marks=pytest.mark.django_db(transaction=one.commits)) for one in cases]


@pytest.mark.once
@pytest.mark.parametrize("case", PERSONAL_AGENT_STORE_CONTRACT, ids=lambda case: case.name)
def test_promise_about_conversations_in_memory(case: PersonalAgentCase) -> None:
    case.run(CompanionSubject(InMemoryPersonalAgent()))


@pytest.mark.once
@pytest.mark.parametrize("case", PERSONAL_AGENT_CONNECTION_STORE_CONTRACT, ids=lambda case: case.name)
def test_promise_about_connections_in_memory(case: ConnectionCase) -> None:
    case.run(CompanionSubject(InMemoryPersonalConnections()))


@pytest.mark.parametrize("case", on_database(PERSONAL_AGENT_STORE_CONTRACT))
def test_promise_about_conversations(case: PersonalAgentCase) -> None:
    case.run(CompanionSubject(OrmPersonalAgent(), thread_ends=connections.close_all))


@pytest.mark.parametrize("case", on_database(PERSONAL_AGENT_CONNECTION_STORE_CONTRACT))
def test_promise_about_connections(case: ConnectionCase) -> None:
    case.run(CompanionSubject(OrmPersonalConnections(), thread_ends=connections.close_all))


# ---- a companion of a store ----------------------------------------------------------------------------------


@pytest.mark.once
@pytest.mark.parametrize("find", [personal_agent_store, personal_connection_store])
def test_they_are_off_until_the_site_asks_for_them(settings: Any, find: Any) -> None:
    with pytest.raises(NotSupported):
        find(OrmStore())
    settings.AGENT = {"PERSONAL_AGENT": True}
    assert find(OrmStore()) is find(OrmStore())


@pytest.mark.once
def test_a_store_in_memory_has_companions_of_its_own(settings: Any) -> None:
    settings.AGENT = {"PERSONAL_AGENT": True}
    one, other = InMemoryStore(), InMemoryStore()
    assert personal_agent_store(one) is personal_agent_store(one)
    assert personal_agent_store(one) is not personal_agent_store(other)
    assert isinstance(personal_connection_store(one), InMemoryPersonalConnections)


@pytest.mark.once
def test_a_store_may_name_others_and_need_name_none(settings: Any) -> None:
    settings.AGENT = {"PERSONAL_AGENT": True}

    class Elsewhere(NotebookStore):
        personal_agent = "agent.testing.InMemoryPersonalAgent"

    assert isinstance(personal_agent_store(Elsewhere()), InMemoryPersonalAgent)  # type: ignore[arg-type]
    for store in (NotebookStore(), Elsewhere()):
        with pytest.raises(NotSupported):
            personal_connection_store(store)  # type: ignore[arg-type]


# ---- the contracts can fail ----------------------------------------------------------------------------------


class ReplacesContext(InMemoryPersonalAgent):
    def update_conversation(self, conversation_id: str, patch: ConversationPatch) -> Any:
        row = self.conversations.get(conversation_id)
        if row is not None and isinstance(patch.context, dict):
            self.conversations.put(row.id, replace(row, context={}))
        return super().update_conversation(conversation_id, patch)


class ForgetsKeys(InMemoryPersonalAgent):
    def append_event(self, conversation_id: str, kind: str, event: Json, event_key: str | None = None) -> Event:
        return super().append_event(conversation_id, kind, event)


class PrunesAll(InMemoryPersonalAgent):
    def prune_events(self, conversation_id: str, up_to_seq: int) -> int:
        row = self.conversations.get(conversation_id)
        if row is not None:
            self.conversations.put(row.id, replace(row, turn_seq=up_to_seq))
        return super().prune_events(conversation_id, up_to_seq)


class TakesOver(InMemoryPersonalAgent):
    def take_turn(self, conversation_id: str, run_id: str) -> Event | None:
        row = self.conversations.get(conversation_id)
        if row is not None:
            self.conversations.put(row.id, replace(row, active_run_id=None))
        return super().take_turn(conversation_id, run_id)


class EndsAnybodys(InMemoryPersonalAgent):
    def finish_turn(self, conversation_id: str, run_id: str) -> bool:
        row = self.conversations.get(conversation_id)
        return row is not None and super().finish_turn(conversation_id, row.active_run_id or run_id)


class HoldsForEver(InMemoryPersonalAgent):
    def claim_reader(self, conversation_id: str, holder: str, until_ms: int) -> bool:
        return super().claim_reader(conversation_id, holder, until_ms * 2)


class AnswersAnyBody(InMemoryPersonalAgent):
    def claim_message(
        self, owner: str, message_id: str, fingerprint: str, *, conversation_id: str | None = None
    ) -> Claim:
        return super().claim_message(owner, message_id, "", conversation_id=conversation_id)


@pytest.mark.once
@pytest.mark.parametrize(
    ("store", "number"),
    [
        (ReplacesContext, "02"),
        (ForgetsKeys, "04"),
        (PrunesAll, "06"),
        (TakesOver, "07"),
        (EndsAnybodys, "08"),
        (HoldsForEver, "09"),
        (AnswersAnyBody, "10"),
    ],
)
def test_a_broken_promise_about_conversations_is_named(store: type[InMemoryPersonalAgent], number: str) -> None:
    [case] = [one for one in PERSONAL_AGENT_STORE_CONTRACT if one.name.split()[0] == number]
    with pytest.raises(ContractMismatch):
        case.run(CompanionSubject(store()))


class KeepsRevokedTokens(InMemoryPersonalConnections):
    def by_token_hash(self, token_hash: str) -> Connection | None:
        key = self.connection_with.first(token_hash)
        return None if key is None else self.connections[key]


class ListsEverybodys(InMemoryPersonalConnections):
    def list_for_user(self, user_id: str) -> list[Connection]:
        return list(self.connections)


@pytest.mark.once
@pytest.mark.parametrize(("store", "number"), [(KeepsRevokedTokens, "03"), (ListsEverybodys, "06")])
def test_a_broken_promise_about_connections_is_named(store: type[InMemoryPersonalConnections], number: str) -> None:
    [case] = [one for one in PERSONAL_AGENT_CONNECTION_STORE_CONTRACT if one.name.split()[0] == number]
    with pytest.raises(ContractMismatch):
        case.run(CompanionSubject(store()))
