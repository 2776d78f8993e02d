"""`STORE` names one class, and with it goes everything that is kept."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps
from django.test import override_settings

from agent.db import close_threads
from agent.domain.commands import NewPrice
from agent.domain.model_calls import Usage
from agent.flows import prices
from agent.flows.admission import chat
from agent.flows.starts import Send
from agent.providers.scripted import ScriptedProvider, ScriptedReply
from agent.registry import isolated_registry
from agent.sinks import get_sink
from agent.store import get_store
from agent.store.companions import personal_agent_store, token_store
from agent.testing import InMemoryStore, drive_run, held_runner
from tests.store.turns import ANA

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("store", "in_tables"), [("agent.testing.InMemoryStore", False), ("agent.store.OrmStore", True)]
)
def test_one_setting_moves_turns_prices_frames_and_tokens(store: str, in_tables: bool) -> None:
    reply = ScriptedReply("Yes.", usage=Usage(input_tokens=10, output_tokens=1), model_id="m")
    settings = {"STORE": store, "PROVIDERS": {"scripted": ScriptedProvider([reply])}, "PERSONAL_AGENT": True}
    with override_settings(AGENT=settings), isolated_registry(), held_runner():
        kept = get_store()
        assert isinstance(kept, InMemoryStore) != in_tables
        prices.supersede(NewPrice(model_id="m", input_per_million_nanos=10**9, output_per_million_nanos=10**9))
        run = drive_run(chat(ANA, Send(message="Hello", idempotency_key="k")).run_id)
        (row,) = kept.usage_of_run(run.id)
        assert (run.status, row.cost_nanos) == ("completed", 11_000)
        assert get_sink().has(run.id)
        tokens = token_store(kept)
        assert tokens is not None
        until = int((kept.clock() + timedelta(minutes=1)).timestamp() * 1000)
        assert [tokens.claim_token("h", ANA.ref, "t", until) for _ in range(2)] == [True, False]
        assert personal_agent_store(kept) is not None
        close_threads()
    filled = {model.__name__ for model in apps.get_app_config("agent").get_models() if model._default_manager.exists()}
    wanted = {"Thread", "Message", "Run", "RunStep", "UsageEntry", "ModelPrice", "ConfirmToken", "IdempotencyKey"}
    assert filled >= wanted if in_tables else filled == set()
