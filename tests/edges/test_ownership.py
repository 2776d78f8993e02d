"""Owner, stranger, operator and nobody, each at every route and every message of a socket; a new one needs a row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.test import Client, override_settings
from django.urls import URLPattern, get_resolver

from agent.flows import attachments, proposals
from agent.flows.admission import Queued, chat, submit
from agent.flows.starts import Send
from agent.models import Message, QueuedMessage, Run, Thread, ToolCall
from agent.providers.scripted import ScriptedProvider, ScriptedReply, call
from agent.registry import agent, isolated_registry, tool
from agent.routing import websocket_application
from agent.sockets.messages import BODIES
from agent.store import get_store
from agent.testing import drive_run, held_runner
from tests.edges.conftest import Person
from tests.edges.sockets import session_of

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]

JSON = "application/json"
EVERYBODY = (200, 200, 200)  # stranger, operator, owner: what a route answers that shows only what is the caller's own
OWNED = (403, 403)  # stranger, operator; then what the owner gets
UNKNOWN = (404, 404)  # of files: another's is as unknown as none
FILE = {"name": "a.txt", "contentType": "text/plain", "size": 2}
MESSAGE = {"message": "Mine?"}
DECISION = {"toolCallId": "{call}"}

# (route, method): body, then the answers to a stranger, an operator and the owner. Nobody gets 401 everywhere.
# The owner goes through them in this order, so what removes something stands last.
Row = tuple[dict[str, Any] | None, tuple[int, ...]]
AGENT: dict[tuple[str, str], Row] = {
    ("threads", "get"): (None, EVERYBODY),
    ("agents", "get"): (None, EVERYBODY),
    ("tools", "get"): (None, EVERYBODY),
    ("models", "get"): (None, EVERYBODY),
    ("quota", "get"): (None, EVERYBODY),
    ("config", "get"): (None, EVERYBODY),
    ("schema", "get"): (None, (404, 404, 404)),  # not served unless a setting says so
    ("attachments", "get"): (None, EVERYBODY),
    ("attachments", "post"): ({}, (415, 415, 415)),  # a form is asked for
    ("uploads", "post"): (FILE, (201, 201, 201)),
    ("upload", "put"): ({}, (*UNKNOWN, 204)),
    ("upload_complete", "post"): (None, (*UNKNOWN, 200)),
    ("attachment_content", "get"): (None, (*UNKNOWN, 404)),  # without the token of its url, its owner has none either
    ("upload", "delete"): (None, (*UNKNOWN, 204)),
    ("stream", "get"): (None, (*OWNED, 200)),
    ("thread", "get"): (None, (*OWNED, 200)),
    ("thread", "patch"): ({"title": "Mine"}, (*OWNED, 200)),
    ("promote", "post"): ({}, (*OWNED, 200)),
    ("fork", "post"): ({}, (*OWNED, 201)),
    ("feedback", "post"): ({"value": "up"}, (*OWNED, 200)),
    ("queue", "get"): (None, (*OWNED, 200)),
    ("resume", "post"): ({}, (*OWNED, 200)),
    ("queued_message", "patch"): ({"content": "Mine"}, (*OWNED, 200)),
    ("proposals", "get"): (None, (*OWNED, 200)),
    ("proposal_approve", "post"): ({}, (*OWNED, 200)),
    ("proposal_reject", "post"): ({}, (*OWNED, 200)),
    ("answer", "post"): ({**DECISION, "answers": {}}, (*OWNED, 409)),  # it is no question
    ("skip", "post"): (DECISION, (*OWNED, 409)),
    ("truncate", "delete"): (None, (*OWNED, 409)),  # while a run holds the conversation
    ("approve", "post"): (DECISION, (*OWNED, 200)),
    ("reject", "post"): (DECISION, (*OWNED, 409)),
    ("cancel", "post"): ({}, (*OWNED, 200)),
    ("interrupt", "post"): ({}, (*OWNED, 200)),
    ("queued_message", "delete"): (None, (*OWNED, 410)),  # it has just started
    ("chat", "post"): ({**MESSAGE, "threadId": "{thread}"}, (*OWNED, 202)),
    ("queue", "delete"): (None, (*OWNED, 200)),
    ("thread", "delete"): (None, (*OWNED, 200)),
}
# stranger and owner are no staff; the operator may all. A body is refused before anything is written.
CONSOLE = {
    ("pricing", "post"): 400,
    ("approval", "post"): 400,
    ("quota", "get"): 400,  # asks whose
    ("stream", "get"): 501,  # a stream without an end is not for this kind of server
}
SOCKET: dict[str, tuple[dict[str, Any], int | None]] = {  # fields; a stranger's status, None where nothing is anybody's
    "send": ({**MESSAGE, "threadId": "{thread}"}, 403),
    "cancel": ({"runId": "{run}"}, 403),
    "attach": ({"runId": "{run}"}, 403),
    "watch": ({"threadId": "{thread}"}, 403),
    "approve": (DECISION, 403),
    "reject": (DECISION, 403),
    "answer": ({**DECISION, "answers": {}}, 403),
    "skip": (DECISION, 403),
    "detach": ({"runId": "{run}"}, None),
    "unwatch": ({"threadId": "{thread}"}, None),
    "ping": ({}, None),
}


@dataclass(frozen=True)
class Stage:
    """What the owner has, by the names that routes and bodies use."""

    ids: dict[str, str]

    def filled(self, value: Any) -> Any:
        text = json.dumps(value)
        for name, one in self.ids.items():
            text = text.replace(f"{{{name}}}", one)
        return json.loads(text)

    def ask(self, client: Client, route: str, method: str, body: object) -> int:
        """The status; a stream is let go unread."""
        answer: Any = client.generic(
            method.upper(),
            self.filled(route),
            "" if body is None else json.dumps(self.filled(body)),
            content_type=JSON,
        )
        answer.close()
        return int(answer.status_code)


def reply(request: Any) -> ScriptedReply:
    said = request.messages[-1]
    if said.tool_results:
        return ScriptedReply("Done.")
    return ScriptedReply(calls=[call("later" if "later" in said.content else "now", "c")])


@pytest.fixture
def stage(owner: Person) -> Iterator[Stage]:
    """A conversation that waits for its owner's word, with a message behind it; one with a proposal; half a file."""
    settings = {"PROVIDERS": {"s": ScriptedProvider(reply)}, "DEFAULT_AGENT": "desk", "ATTACHMENTS": {}}
    storage = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    stored = override_settings(STORAGES={"default": storage, "agent_attachments": storage})
    with isolated_registry(), override_settings(AGENT=settings), stored, held_runner():

        @tool(kind="action")
        def now() -> str:
            """Act in the turn."""
            return "done"

        @tool(kind="action", approval_mode="independent")
        def later() -> str:
            """Act outside of the turn."""
            return "done"

        agent(name="desk", prompt="p", tools=[now, later])(type("Desk", (), {}))
        other = chat(owner.actor, Send(message="Do it later."))
        drive_run(other.run_id)
        run = chat(owner.actor, Send(message="Do it now."))
        drive_run(run.run_id)
        waits = submit(owner.actor, Send(message="And then?", thread_id=run.thread_id))
        assert isinstance(waits, Queued)
        [pending] = get_store().pending_approvals(2)
        [proposed] = proposals.page(owner.actor, other.thread_id).items
        yield Stage(
            {
                "run": run.run_id,
                "thread": run.thread_id,
                "call": pending.tool_call.id,
                "answer": pending.tool_call.message_id,
                "waiting": waits.message_id,
                "proposed_in": other.thread_id,
                "proposal": proposed.id,
                "file": attachments.begin(owner.actor, name="a.txt", content_type="text/plain", size=2).media_id,
            }
        )


# What stands for each part of a path; where a name means another thing, by route.
PARTS = {
    "run_id": "{run}",
    "thread_id": "{thread}",
    "message_id": "{answer}",
    "proposal_id": "{proposal}",
    "media_id": "{file}",
    "subject": "{call}",
}
WAITING = {"queued_message", "interrupt"}


def routes(prefix: str) -> dict[tuple[str, str], str]:
    """Every route and method under a prefix, as the resolver has them, and its address."""
    found = {}
    for address, pattern in _patterns(get_resolver().url_patterns):
        view: Any = getattr(pattern.callback, "view_class", None)
        if not address.startswith(prefix) or pattern.name is None or view is None:
            continue
        for method in set(view.http_method_names) - {"options", "head", "trace"}:
            if hasattr(view, method):
                found[pattern.name, method] = "/" + _address(address, pattern.name)
    return found


def _patterns(under: list[Any], prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for each in under:
        here = prefix + str(each.pattern)
        if isinstance(each, URLPattern):
            yield here, each
        else:
            yield from _patterns(each.url_patterns, here)


def _address(path: str, name: str) -> str:
    parts = dict(PARTS)
    if name in WAITING:
        parts["message_id"] = "{waiting}"
    if name.startswith("proposal"):
        parts["thread_id"] = "{proposed_in}"
    for part, stands in parts.items():
        path = path.replace(f"<str:{part}>", stands)
    return path


def rows() -> list[Any]:
    """All that a refusal must leave as it was."""
    return [list(table._default_manager.order_by("pk").values()) for table in (Thread, Message, Run, ToolCall)] + [
        list(QueuedMessage.objects.order_by("pk").values())
    ]


def test_every_route_has_a_row() -> None:
    assert set(routes("agent/")) == set(AGENT)


def test_nobody_a_stranger_and_an_operator_are_refused_everywhere_and_change_nothing(
    stage: Stage, stranger: Person, operator: Person
) -> None:
    before, where = rows(), routes("agent/")
    for (name, method), (body, (to_stranger, to_operator, _)) in AGENT.items():
        people = ((Client(), 401), (stranger.client, to_stranger), (operator.client, to_operator))
        asked = [stage.ask(client, where[name, method], method, body) for client, _ in people]
        assert asked == [status for _, status in people], (name, method)
    assert rows() == before


def test_the_owner_reaches_all_that_is_theirs(stage: Stage, owner: Person) -> None:
    where = routes("agent/")
    for (name, method), (body, (_, _, expected)) in AGENT.items():
        assert stage.ask(owner.client, where[name, method], method, body) == expected, (name, method)


def test_the_console_is_for_staff_with_its_permissions_whoever_owns_what(
    stage: Stage, owner: Person, stranger: Person, operator: Person
) -> None:
    for (name, method), address in routes("governance/").items():
        body: dict[str, Any] | None = {} if method == "post" else None
        asked = [stage.ask(one, address, method, body) for one in (Client(), stranger.client, owner.client)]
        assert asked == [401, 403, 403], (name, method)
        assert stage.ask(operator.client, address, method, body) == CONSOLE.get((name, method), 200), (name, method)


def heard(person: Person, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a socket of theirs says to each message."""
    headers = [(b"origin", b"http://testserver"), (b"cookie", f"sessionid={session_of(person.user)}".encode())]

    async def talk() -> list[dict[str, Any]]:
        line = WebsocketCommunicator(websocket_application, "/ws/agent/", headers=headers)
        assert (await line.connect(timeout=30))[0]
        said = []
        for message in asked:
            await line.send_json_to(message)
            said.append(json.loads((await line.receive_output(timeout=30))["text"]))
        await line.disconnect()
        return said

    return asyncio.run(talk())


def test_every_message_of_a_socket_has_a_row() -> None:
    assert set(SOCKET) == set(BODIES)


def test_a_socket_refuses_what_is_anothers_and_changes_nothing(
    stage: Stage, stranger: Person, operator: Person
) -> None:
    before = rows()
    proposal = {"threadId": "{proposed_in}", "proposalId": "{proposal}"}
    asked = [(kind, *row) for kind, row in SOCKET.items()] + [(kind, proposal, 403) for kind in ("approve", "reject")]
    messages = [{"type": kind, "ref": str(at), **stage.filled(fields)} for at, (kind, fields, _) in enumerate(asked)]
    for person in (stranger, operator):
        answers = heard(person, messages)
        assert [said.get("status") for said in answers] == [status for _, _, status in asked], answers
        assert [said["type"] == "error" for said in answers] == [status is not None for _, _, status in asked]
    assert rows() == before


def test_nobody_has_no_socket() -> None:
    async def said() -> dict[str, Any]:
        line = WebsocketCommunicator(websocket_application, "/ws/agent/", headers=[(b"origin", b"http://testserver")])
        await line.connect(timeout=30)  # accepted, so that a browser is told the code
        return dict(await line.receive_output(timeout=30))

    assert asyncio.run(said())["code"] == 4401
