"""A site with an agent, a scripted model, and a way to drive a turn to its end on a real store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import override_settings

from agent.db import close_threads
from agent.domain.actor import Actor
from agent.domain.snapshots import Message, Run, Step
from agent.flows import dispatch
from agent.flows.admission import Admitted, Send, submit
from agent.flows.driver import Driver
from agent.flows.runner import drive
from agent.providers.scripted import Script, ScriptedProvider
from agent.registry import Registry, isolated_registry
from agent.store import get_store
from agent.store.base import AgentStore

ALICE = Actor("alice")
DEADLINE = 20


class Held:
    """A runner that only notes what it was handed: the test drives, or does not."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.signalled: list[str] = []

    def start(self, run_id: str) -> None:
        self.started.append(run_id)

    def signal(self, run_id: str) -> None:
        self.signalled.append(run_id)

    def is_alive(self, run_id: str) -> bool | None:
        return None

    def stop(self, grace_seconds: float) -> None:
        return


@dataclass
class Site:
    """What a test does on the site; the model says what `script` holds."""

    registry: Registry
    runner: Held
    provider: ScriptedProvider
    store: AgentStore = field(default_factory=get_store)

    def send(self, message: str | None = "Hello", *, actor: Actor = ALICE, **fields: Any) -> Admitted:  # noqa: ANN401
        return submit(actor, Send(message=message, **fields))

    def drive(self, run_id: str, *, meanwhile: Callable[[Driver], object] | None = None) -> Run:
        """Drive a run on a loop of its own until nobody has to work on it."""

        async def play() -> None:
            driver = Driver(run_id)
            task = asyncio.create_task(drive(driver))
            if meanwhile is not None:
                asyncio.get_running_loop().call_soon(meanwhile, driver)
            async with asyncio.timeout(DEADLINE):
                await task

        asyncio.run(play())
        run = self.store.get_run(run_id)
        assert run is not None
        return run

    def turn(self, message: str | None = "Hello", **fields: Any) -> Run:  # noqa: ANN401
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
def runner() -> Iterator[Held]:
    held = Held()
    before = dispatch.use(held)
    yield held
    dispatch.use(before)


@pytest.fixture
def site(transactional_db: None, runner: Held) -> Iterator[Callable[..., Site]]:
    """Make a site whose model follows the script."""
    with isolated_registry() as registry:
        overriding: list[Any] = []

        def make(script: Script, **settings: Any) -> Site:  # noqa: ANN401
            provider = ScriptedProvider(script)
            changed = override_settings(AGENT={"PROVIDERS": {"scripted": provider}, **settings})
            changed.enable()
            overriding.append(changed)
            return Site(registry=registry, runner=runner, provider=provider)

        yield make
        for changed in reversed(overriding):
            changed.disable()
        close_threads()
