"""Gates of a tool hold when it is offered and again when it is called, and whoever is refused learns nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from agent.db import in_db
from agent.domain.actor import Actor
from agent.domain.model_calls import ModelRequest
from agent.providers.scripted import ScriptedReply, call
from agent.registry import Described, agent, tool
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]


class Gate:
    """Open until the test closes it; each way of closing a tool looks at it."""

    def __init__(self, user: User) -> None:
        self.is_open, self.user = True, user
        self.asked = 0

    def look(self, _: object) -> bool:
        self.asked += 1
        return self.is_open

    def describe(self, _: object) -> Described:
        return Described(available=self.look(_))

    def fall(self, _: object) -> bool:
        if not self.look(_):
            raise RuntimeError("the directory is down")
        return True

    def close(self) -> None:
        self.is_open = False
        self.user.user_permissions.clear()


GATES: dict[str, Callable[[Gate], dict[str, Any]]] = {
    "can_use": lambda gate: {"can_use": gate.look},
    "can_use that raises": lambda gate: {"can_use": gate.fall},
    "is_enabled": lambda gate: {"is_enabled": gate.look},
    "describe": lambda gate: {"describe": gate.describe},
    "permission": lambda gate: {"permission": "auth.view_group"},
}


@pytest.fixture
def gate(transactional_db: None) -> Gate:
    user = User.objects.create_user("ana")
    user.user_permissions.add(Permission.objects.get(codename="view_group"))
    return Gate(user)


@pytest.mark.parametrize("kind", ["read", "action"])
@pytest.mark.parametrize("options", GATES.values(), ids=GATES)
def test_a_tool_that_closes_between_the_offer_and_the_call_is_not_run(
    site: MakeSite, gate: Gate, options: Callable[[Gate], dict[str, Any]], kind: str
) -> None:
    done: list[str] = []

    async def script(request: ModelRequest) -> Any:
        if request.messages[-1].tool_results:
            return "It cannot be done."
        assert [one.name for one in request.tools] == ["look", "safe"]
        await in_db(gate.close)
        return ScriptedReply(calls=[call("look", "a"), call("safe", "b"), call("no_such_tool", "c")])

    closing: dict[str, Any] = {"requires_approval": False} if kind == "action" else {}

    @tool(name="look", kind=kind, **closing, **options(gate))
    def look() -> str:
        """Look."""
        done.append("look")
        return "seen"

    @tool
    def safe() -> str:
        """Open to all."""
        done.append("safe")
        return "yes"

    desk = site(script)
    agent(name="desk", prompt="You help.", tools=["look", "safe"])(type("Desk", (), {}))
    run = desk.drive(desk.send(actor=Actor(str(gate.user.pk)), agent="desk").run_id)
    assert (run.status, done) == ("completed", ["safe"])
    refused, allowed, unknown = desk.messages(run.thread_id)[1].tool_results or []
    assert allowed["output"] == "yes"
    assert refused["error"].replace("look", "NAME") == unknown["error"].replace("no_such_tool", "NAME")
    assert [one.name for one in desk.provider.requests[-1].tools] == ["safe"]  # and it is offered no more
