"""A site with an agent, a scripted model, and a way to drive a turn to its end on a real store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import override_settings

from agent.db import close_threads
from agent.domain.actor import Actor
from agent.domain.runs import Run, Step
from agent.domain.snapshots import Message
from agent.flows.admission import Admitted, Outcome, Queued, chat, submit
from agent.flows.driver import Driver
from agent.flows.starts import Send
from agent.providers.scripted import Script, ScriptedProvider
from agent.registry import Registry, isolated_registry
from agent.store import get_store
from agent.store.base import AgentStore
from agent.testing.turns import HeldRunner, drive_run, held_runner

ALICE = Actor("alice")


@dataclass
class Site:
    """What a test does on the site; the model says what `script` holds."""

    registry: Registry
    runner: HeldRunner
    provider: ScriptedProvider
    store: AgentStore = field(default_factory=get_store)

    def send(self, message: str | None = "Hello", *, actor: Actor = ALICE, **fields: Any) -> Admitted:
        return chat(actor, Send(message=message, **fields))

    def submit(self, message: str | None = "And then?", *, actor: Actor = ALICE, **fields: Any) -> Outcome:
        return submit(actor, Send(message=message, **fields))

    def wait(self, message: str, thread_id: str, **fields: Any) -> Queued:
        """Send a message that has to wait."""
        outcome = self.submit(message, thread_id=thread_id, **fields)
        assert isinstance(outcome, Queued)
        return outcome

    def waiting(self, thread_id: str) -> list[str]:
        return [message.content for message in self.store.list_queue(thread_id)]

    def drive(self, run_id: str, *, meanwhile: Callable[[Driver], object] | None = None) -> Run:
        return drive_run(run_id, meanwhile=meanwhile)

    def turn(self, message: str | None = "Hello", **fields: Any) -> Run:
        return self.drive(self.send(message, **fields).run_id)

    def messages(self, thread_id: str) -> Sequence[Message]:
        detail = self.store.get_thread(thread_id)
        assert detail is not None
        return detail.messages

    def frames(self, run_id: str) -> list[dict[str, Any]]:
        """The run's frames; the terminal row is `{"end": <error or None>}`."""
        rows = self.store.read_frames(run_id, 0)
        return [json.loads(row.frame) if row.frame is not None else {"end": row.error} for row in rows]

    def steps(self, run_id: str) -> list[Step]:
        return self.store.steps(run_id)


@pytest.fixture
def runner() -> Iterator[HeldRunner]:
    with held_runner() as held:
        yield held


@pytest.fixture
def site(transactional_db: None, runner: HeldRunner) -> Iterator[Callable[..., Site]]:
    """Make a site whose model follows the script."""
    with isolated_registry() as registry:
        overriding: list[Any] = []

        def make(script: Script, **settings: Any) -> Site:
            provider = ScriptedProvider(script)
            changed = override_settings(AGENT={"PROVIDERS": {"scripted": provider}, **settings})
            changed.enable()
            overriding.append(changed)
            return Site(registry=registry, runner=runner, provider=provider)

        yield make
        for changed in reversed(overriding):
            changed.disable()
        close_threads()
