"""Who is on stage, and a desk with an agent whose model says what the test told it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from agent.actors import actor_of
from agent.db import close_threads
from agent.domain.actor import Actor
from agent.flows import dispatch
from agent.providers.scripted import Script, ScriptedProvider
from agent.registry import ToolContext, agent, isolated_registry, tool

JSON = "application/json"
MakeDesk = Callable[..., ScriptedProvider]


@dataclass(frozen=True)
class Person:
    """A user with a browser."""

    user: User
    client: Client

    @property
    def actor(self) -> Actor:
        actor = actor_of(self.user)
        assert actor is not None
        return actor

    def post(self, path: str, body: object = None, **headers: str) -> Any:
        text = json.dumps(body) if body is not None else ""
        return self.client.generic("POST", path, text, content_type=JSON, headers=headers)

    def patch(self, path: str, body: object) -> Any:
        return self.client.generic("PATCH", path, json.dumps(body), content_type=JSON)

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(path, headers=headers)

    def delete(self, path: str) -> Any:
        return self.client.delete(path)


def person(name: str, **fields: Any) -> Person:
    user = User.objects.create_user(name, **fields)
    client = Client()
    client.force_login(user)
    return Person(user, client)


@pytest.fixture
def owner(db: None) -> Person:
    return person("owner")


@pytest.fixture
def stranger(db: None) -> Person:
    return person("stranger")


@pytest.fixture
def operator(db: None) -> Person:
    return person("operator", is_staff=True, is_superuser=True)


@pytest.fixture
def make_desk() -> Iterator[MakeDesk]:
    """Declare the agents `desk` and `back-office` and the tool `look_up_order`; the model follows the script."""
    with isolated_registry():
        changes: list[Any] = []

        def make(script: Script = (), **settings: Any) -> ScriptedProvider:
            provider = ScriptedProvider(script)
            change = override_settings(AGENT={"PROVIDERS": {"scripted": provider}, "DEFAULT_AGENT": "desk", **settings})
            change.enable()
            changes.append(change)
            return provider

        @tool
        def look_up_order(ctx: ToolContext, number: int) -> dict[str, Any]:
            """One order by its number."""
            return {"number": number, "status": "sent", "for": ctx.actor.ref}

        agent(name="desk", prompt="You help.", tools=[look_up_order], description="The desk")(type("Desk", (), {}))
        agent(name="back-office", prompt="You count.", tools=[], roles=("finance",))(type("Back", (), {}))
        yield make
        for change in reversed(changes):
            change.disable()
        dispatch.stop(grace_seconds=5)
        close_threads()


def events_of(stream: bytes) -> list[tuple[str, int | None, Any]]:
    """The events of an SSE body: name (`frame` for the un-named), id, data."""
    events = []
    for block in stream.decode().split("\n\n"):
        lines = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        fields = {name: value for name, _, value in lines}
        number = int(fields["id"]) if "id" in fields else None
        events.append((fields.get("event", "frame"), number, json.loads(fields["data"])))
    return events


def body_of(response: Any) -> bytes:
    return b"".join(response.streaming_content)
