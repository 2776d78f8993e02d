"""A confirmed tool: a preview first, then once what it said, for whoever saw it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone
from pydantic import BaseModel

from agent.db import close_threads
from agent.domain.actor import Actor
from agent.domain.confirm_tokens import hash_of
from agent.domain.model_calls import ModelRequest
from agent.errors import ConfirmTokenError, Invalid, NotFound, ToolError
from agent.flows.confirmed_calls import call_confirmed
from agent.flows.upkeep import purge
from agent.models import ConfirmToken
from agent.providers.scripted import ScriptedReply, call
from agent.registry import Registry, Tool, ToolContext, agent, isolated_registry, tool
from agent.store import OrmStore, get_store
from tests.flows.conftest import Site

ANA, BO = Actor("ana", ("clerk",), "acme"), Actor("bo", ("clerk",), "acme")
pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class World:
    registry: Registry
    prepared: int = 0
    committed: list[int] = field(default_factory=list)
    refuses: Exception | None = None
    breaks: Exception | None = None

    def call(self, actor: Actor = ANA, name: str = "export", **arguments: Any) -> Any:
        return asyncio.run(call_confirmed(actor, name, arguments))

    def again(self, seen: dict[str, Any], actor: Actor = ANA, **arguments: Any) -> Any:
        """The second call."""
        return self.call(actor, **arguments, confirm=True, confirmToken=seen["confirmToken"])


@pytest.fixture
def world() -> Iterator[World]:
    with isolated_registry() as registry, override_settings(AGENT={}):
        made = World(registry)

        @tool(confirmed=True, roles=["clerk"])
        class Export(Tool):
            """Export the orders of a year."""

            class Input(BaseModel):
                year: int
                draft: bool = False

            def prepare(self, input: Any, ctx: ToolContext) -> dict[str, int]:  # noqa: A002
                made.prepared += 1
                if made.refuses:
                    raise made.refuses
                return {"orders": input.year - 2000}

            async def commit(self, input: Any, ctx: ToolContext) -> int:  # noqa: A002
                if made.breaks:
                    raise made.breaks
                made.committed.append(input.year)
                return int(input.year)

        yield made
        close_threads()


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(ConfirmTokenError) as told:
        call()
    return told.value.reason


def test_what_was_previewed_is_done_once(world: World) -> None:
    seen = world.call(year=2026)
    assert seen["preview"] == {"orders": 26}
    assert world.committed == []
    assert world.again(seen, draft=False, year=2026) == 2026  # a default that is written out is the same argument
    assert refused(lambda: world.again(seen, year=2026)) == "used"
    assert world.committed == [2026]
    (row,) = ConfirmToken.objects.all()
    assert (row.hash, row.actor_ref, row.tool) == (hash_of(seen["confirmToken"]), "ana", "export")


def test_another_call_is_invalid_before_anything_runs(world: World) -> None:
    seen = world.call(year=2026)
    others: list[Callable[[], object]] = [
        lambda: world.again(seen, BO, year=2026),
        lambda: world.again(seen, Actor("ana", ("clerk",)), year=2026),
        lambda: world.again(seen, year=2025),
        lambda: world.again({"confirmToken": None}, year=2026),
        lambda: world.again({"confirmToken": "x" * 5000}, year=2026),
    ]
    assert {refused(other) for other in others} == {"invalid"}
    with override_settings(AGENT={"CONFIRM_TOKEN_SECRET": "another"}):
        assert refused(lambda: world.again(seen, year=2026)) == "invalid"
    assert (world.prepared, world.committed) == (1, [])
    assert not ConfirmToken.objects.exists()


def test_a_token_is_over_when_its_seconds_are(world: World) -> None:
    with override_settings(AGENT={"CONFIRM_TOKEN_SECONDS": 60}):
        seen = world.call(year=2026)
        get_store().clock = lambda: timezone.now() + timedelta(seconds=61)
        assert refused(lambda: world.again(seen, year=2026)) == "invalid"


def test_a_refusal_and_a_commit_that_fails_leave_the_token_as_it_was(world: World) -> None:
    seen = world.call(year=2026)
    world.refuses = ToolError("The year is not over.")
    with pytest.raises(ToolError, match="not over"):
        world.again(seen, year=2026)
    world.refuses, world.breaks = None, ToolError("The disk is full.")
    with pytest.raises(ToolError, match="disk"):
        world.again(seen, year=2026)
    world.breaks = None
    assert world.again(seen, year=2026) == 2026


def test_of_two_who_use_it_at_once_exactly_one_wins(world: World) -> None:
    seen = world.call(year=2026)
    together = {"year": 2026, "confirm": True, "confirmToken": seen["confirmToken"]}

    async def both() -> list[object]:
        calls = (call_confirmed(ANA, "export", together) for _ in range(2))
        return list(await asyncio.gather(*calls, return_exceptions=True))

    won, lost = sorted(asyncio.run(both()), key=lambda each: isinstance(each, Exception))
    assert (won, getattr(lost, "reason", None), world.committed) == (2026, "used", [2026])


def test_a_store_that_cannot_remember_lets_it_be_used_until_it_expires(world: World) -> None:
    lesser = type("Lesser", (OrmStore,), {"capabilities": OrmStore.capabilities - {"confirm_tokens"}})
    with override_settings(AGENT={"STORE": lesser}):
        seen = world.call(year=2026)
        assert [world.again(seen, year=2026) for _ in range(2)] == [2026, 2026]


def test_a_store_may_name_who_remembers_in_its_stead(world: World) -> None:
    members = {
        "capabilities": OrmStore.capabilities - {"confirm_tokens"},
        "confirm_tokens": "agent.testing.InMemoryConfirmTokens",
    }
    with override_settings(AGENT={"STORE": type("Lesser", (OrmStore,), members)}):
        seen = world.call(year=2026)
        assert world.again(seen, year=2026) == 2026
        assert refused(lambda: world.again(seen, year=2026)) == "used"
        get_store().clock = lambda: timezone.now() + timedelta(seconds=901)
        assert (purge().tokens, ConfirmToken.objects.count()) == (1, 0)


def test_only_an_open_confirmed_tool_is_called_and_only_with_its_arguments(world: World) -> None:
    @tool
    def look() -> int:
        """Look."""
        return 1

    for actor, name in ((ANA, "look"), (ANA, "nothing"), (Actor("visitor"), "export")):
        with pytest.raises(NotFound):
            world.call(actor, name, year=2026)
    with pytest.raises(Invalid, match="year is required"):
        world.call()


def test_a_model_may_call_it_in_a_turn(site: Callable[..., Site], world: World) -> None:
    def model(request: ModelRequest) -> ScriptedReply:
        results = request.messages[-1].tool_results
        if not results:
            return ScriptedReply(calls=[call("export", "first", year=2026)])
        told = results[0].output
        if not isinstance(told, dict):
            return ScriptedReply(f"Exported {told}.")
        second = call("export", "second", year=2026, confirm=True, confirmToken=told["confirmToken"])
        return ScriptedReply(calls=[second])

    agent(name="desk", prompt="p", tools=["export"])(type("Desk", (), {}))
    desk = site(model)
    run = desk.turn(actor=ANA)
    assert (run.status, world.committed) == ("completed", [2026])
    assert desk.messages(run.thread_id)[-1].content == "Exported 2026."


@pytest.mark.parametrize(
    ("options", "members", "text"),
    [
        ({}, {"Input": BaseModel}, "has prepare"),
        ({}, {"prepare": lambda self, asked, ctx: 1}, "has an Input"),
        ({"kind": "action"}, {}, "for reads only"),
    ],
)
def test_a_confirmed_tool_that_could_not_work_is_refused(
    options: dict[str, Any], members: dict[str, Any], text: str
) -> None:
    with isolated_registry() as registry:
        body = {"commit": lambda self, asked, ctx: 1, "__doc__": "Text.", **members}
        tool(name="broken", confirmed=True, **options)(type("Broken", (Tool,), body))
        assert text in "\n".join(registry.problems())
