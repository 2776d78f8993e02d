"""A secret that an error repeats is in no row, no frame, no log, no event and no span (CASES B149)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from agent.errors import ModelError
from agent.models import Message, Run, RunStep, StreamFrame, ToolCall
from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, tool
from agent.signals import Event, happened
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]
KEY, PASSWORD, TOKEN = "sk-live-1234567890abcdef", "hunter2hunter2", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"
TEXT = f"401 for key {KEY} at postgres://agent:{PASSWORD}@db/x; Authorization: Bearer {TOKEN}"


def everything_kept() -> str:
    rows: list[Any] = [list(model.objects.values()) for model in (Run, RunStep, Message, ToolCall, StreamFrame)]
    return str(rows)


@pytest.mark.parametrize("exposed", [True, False])
@pytest.mark.parametrize("error", [RuntimeError(TEXT), ModelError(TEXT)], ids=["its own", "a model's"])
def test_a_providers_error(
    site: MakeSite, caplog: pytest.LogCaptureFixture, exposed: bool, error: BaseException
) -> None:
    caplog.set_level(logging.DEBUG)
    events: list[Event] = []

    def take(event: Event, **_: object) -> None:
        events.append(event)

    happened.connect(take)
    desk = site([error], EXPOSE_ERRORS=exposed)
    run = desk.turn()
    happened.disconnect(take)
    assert (run.status, run.error_code) == ("failed", "run_failed")
    assert "401 for key [hidden]" in (run.error_message or "")
    assert run.id in caplog.text  # what a person may be asked for leads to the log
    kept = everything_kept() + caplog.text + str(events)
    assert not [secret for secret in (KEY, PASSWORD, TOKEN) if secret in kept]


def test_a_tools_error(site: MakeSite, caplog: pytest.LogCaptureFixture) -> None:
    desk = site([ScriptedReply(calls=[call("look_up")]), "It failed."])

    @tool
    def look_up() -> str:
        """Look it up."""
        raise RuntimeError(TEXT)

    agent(name="shop", prompt="p", tools=[look_up])(type("Shop", (), {}))
    assert desk.turn().status == "completed"
    assert "401 for key [hidden]" in everything_kept()
    assert not [secret for secret in (KEY, PASSWORD, TOKEN) if secret in everything_kept() + caplog.text]
