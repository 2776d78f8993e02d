"""Turns without infrastructure: a store and a stream in memory, a scripted model, a runner that waits to be told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from django.test import override_settings

from agent.conf import written_settings
from agent.db import close_threads
from agent.domain.actor import Actor
from agent.domain.runs import Run
from agent.domain.snapshots import Message
from agent.errors import NotFound
from agent.flows import dispatch
from agent.flows.admission import chat
from agent.flows.driver import Driver
from agent.flows.runner import drive
from agent.flows.starts import Send
from agent.providers.scripted import Script, ScriptedProvider
from agent.sinks import get_sink
from agent.sinks.memory import MemorySink
from agent.store import get_store
from agent.testing.memory import InMemoryStore

DEADLINE_SECONDS = 30
TESTER = Actor("tester")


class HeldRunner:
    """A runner that only notes what it was handed: the test drives, or does not."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.signalled: list[str] = []
        self.executed: list[str] = []

    def start(self, run_id: str) -> None:
        self.started.append(run_id)

    def signal(self, run_id: str) -> None:
        self.signalled.append(run_id)

    def execute(self, proposal_id: str) -> None:
        self.executed.append(proposal_id)

    def is_alive(self, run_id: str) -> bool | None:
        return None

    def wait(self, seconds: float) -> bool:
        return True

    def stop(self, grace_seconds: float) -> None:
        return


@contextmanager
def held_runner() -> Iterator[HeldRunner]:
    """Put a `HeldRunner` in this process's place for a while; no connection of ours outlives it."""
    held = HeldRunner()
    before = dispatch.use(held)
    try:
        yield held
    finally:
        dispatch.use(before)
        close_threads()  # PostgreSQL drops no test database that somebody is connected to


def drive_run(run_id: str, *, meanwhile: Callable[[Driver], object] | None = None) -> Run:
    """Work on a run until nobody has to; `meanwhile` is called on its loop with what can cancel it.

    Raises `TimeoutError` after 30 s and `NotFound` for an unknown run.
    """

    async def play() -> None:
        driver = Driver(run_id)
        task = asyncio.create_task(drive(driver))
        if meanwhile is not None:
            asyncio.get_running_loop().call_soon(meanwhile, driver)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await task

    asyncio.run(play())
    run = get_store().get_run(run_id)
    if run is None:
        raise NotFound
    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTurn:
    """What a turn left behind."""

    run: Run
    messages: tuple[Message, ...]
    frames: list[dict[str, Any]]  # without the terminal row
    store: InMemoryStore


def run_turn_in_memory(script: Script, message: str = "Hello", *, actor: Actor = TESTER, **send: Any) -> MemoryTurn:  # noqa: ANN401
    """One turn of the site's own agents and tools with a scripted model: no database, no network.

    Agents that are asked answer too, from the same script, in the order in which they work. `send` takes the other
    fields of `agent.flows.admission.Send`, such as `agent`.
    """
    store = InMemoryStore()
    mine = {"STORE": store, "SINK": "memory", "PROVIDERS": {"scripted": ScriptedProvider(script)}}
    mine |= {"DEFAULT_PROVIDER": "scripted", "SINK_OPTIONS": {}}
    with override_settings(AGENT={**written_settings(), **mine}), held_runner() as held:
        admitted = chat(actor, Send(message=message, **send))
        run = _driven(admitted.run_id, held)
        detail = store.get_thread(admitted.thread_id)
        told = cast("MemorySink", get_sink()).stored(admitted.run_id)
        frames = [json.loads(row.frame) for row in told if row.frame is not None] if run.status != "failed" else []
    return MemoryTurn(run=run, messages=detail.messages if detail else (), frames=frames, store=store)


def _driven(run_id: str, held: HeldRunner) -> Run:
    """The run once nothing is handed over any more: not it, nor what it asked for or what woke it."""
    for handed in held.started:  # it grows on the way
        drive_run(handed)
    run = get_store().get_run(run_id)
    if run is None:
        raise NotFound
    return run
