"""Who calls, told by a host with people of its own: over HTTP and sockets, by every shipped resolver and by its own.

`python -m tests.people.story` raises where something is not as it should be.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.people.settings"
django.setup()

from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.core.management import call_command
from django.test import Client, override_settings

from agent.actors import ANONYMOUS_COOKIE, DjangoBackgroundResolver
from agent.db import close_threads
from agent.flows import dispatch
from agent.models import Run, Thread
from agent.routing import websocket_application
from tests.people.models import Person

ORIGIN = (b"origin", b"http://testserver")
SECONDS = 30


def ask(client: Client, **headers: str) -> tuple[Thread, str]:
    """Ask over HTTP; the conversation and the answer."""
    body = json.dumps({"message": "Who am I?"})
    response: Any = client.post("/agent/chat", body, content_type="application/json", headers=headers)
    assert response.status_code == 200, response.content
    said = b"".join(response.streaming_content).decode()
    thread = Thread.objects.get(pk=response["X-Agent-Thread-Id"])
    frames = [json.loads(line[6:]) for line in said.split("\n") if line.startswith("data: ")]
    return thread, "".join(frame["text"] for frame in frames if frame.get("kind") == "text")


async def told(*headers: tuple[bytes, bytes]) -> str | int:
    """Ask over a socket; the conversation's id, or the code it was closed with."""
    line = WebsocketCommunicator(websocket_application, "/ws/agent/", headers=[ORIGIN, *headers])
    connected, code = await line.connect(timeout=SECONDS)
    if not connected:
        return int(code or 0)
    await line.send_json_to({"type": "send", "ref": "1", "message": "Who am I?"})
    thread_id = ""
    while True:
        said = await line.receive_output(timeout=SECONDS)
        if said["type"] == "websocket.close":
            return int(said["code"])
        heard: dict[str, str] = json.loads(said["text"])
        assert heard["type"] != "error", heard
        thread_id = heard.get("threadId", thread_id)
        if heard["type"] == "done":
            await line.disconnect()
            return thread_id


def by_socket(*headers: tuple[bytes, bytes]) -> Thread | int:
    """The conversation that a socket with these headers has begun."""
    answer = asyncio.run(told(*headers))
    return answer if isinstance(answer, int) else Thread.objects.get(pk=answer)


def cookies(client: Client) -> tuple[bytes, bytes]:
    return b"cookie", "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items()).encode()


def owner_of(thread: Thread | int) -> tuple[str, str | None]:
    assert isinstance(thread, Thread), thread
    return thread.actor_ref, thread.tenant_ref


def by_the_hosts_own_users() -> None:
    ana, bo = (Person.objects.create_user(f"{name}@example.com", "secret") for name in ("ana", "bo"))
    browser, other = Client(), Client()
    assert browser.login(username=ana.email, password="secret")
    assert other.login(username=bo.email, password="secret")
    thread, text = ask(browser)
    assert (owner_of(thread), text) == ((str(ana.pk), None), "Nobody may look that up.")
    Person.objects.filter(pk=ana.pk).update(may="people.look")
    assert ask(browser)[1] == f"{ana.pk} of None"
    assert owner_of(by_socket(cookies(browser))) == (str(ana.pk), None)
    assert [client.get(f"/agent/threads/{thread.pk}").status_code for client in (browser, other)] == [200, 403]
    assert by_socket() == 4401
    now = DjangoBackgroundResolver()
    assert now.resolve(str(ana.pk), None) is not None
    Person.objects.filter(pk=ana.pk).update(is_active=False)
    assert (now.resolve(str(ana.pk), None), now.resolve("7", None)) == (None, None)
    assert browser.get("/agent/threads").status_code == 401
    assert by_socket(cookies(browser)) == 4401


def by_a_cookie() -> None:
    visitor, other = Client(), Client()
    assert visitor.get("/agent/config").json()["identity"] == {"anonymous": True}
    thread, _ = ask(visitor)
    ref, tenant = owner_of(thread)
    assert ref.startswith("anon:")
    assert visitor.cookies[ANONYMOUS_COOKIE].value not in ref
    assert owner_of(by_socket(cookies(visitor))) == (ref, tenant)
    assert by_socket() == 4401  # a handshake hands out no cookie
    assert other.get(f"/agent/threads/{thread.pk}").status_code == 403


def by_a_gateway() -> None:
    thread, _ = ask(Client(), **{"x-actor-id": "u-1", "x-actor-role": "lead", "x-tenant-ref": "acme"})
    assert owner_of(thread) == ("u-1", "acme")
    assert Run.objects.get(thread_id=thread.pk).actor["roles"] == ["lead"]
    assert owner_of(by_socket((b"x-actor-id", b"u-1"), (b"x-tenant-ref", b"acme"))) == ("u-1", "acme")
    path, client = f"/agent/threads/{thread.pk}", Client()
    asked = [{"x-actor-id": "u-1", "x-tenant-ref": "acme"}, {"x-actor-id": "u-1"}, {"x-actor-id": "u-2"}, {}]
    assert [client.get(path, headers=headers).status_code for headers in asked] == [200, 403, 403, 401]


def by_the_hosts_own_resolver() -> None:
    thread, _ = ask(Client(), **{"x-api-key": "k-acme"})
    assert owner_of(thread) == ("partner-1", "acme")
    assert owner_of(by_socket((b"x-api-key", b"k-acme"))) == ("partner-1", "acme")
    assert Client().get("/agent/threads", headers={"x-api-key": "k-other"}).status_code == 401


STORIES: dict[Callable[[], None], dict[str, Any]] = {
    by_the_hosts_own_users: {},
    by_a_cookie: {"ACTOR_RESOLVER": "agent.actors.AnonymousCookieResolver"},
    by_a_gateway: {"ACTOR_RESOLVER": "agent.actors.HeaderActorResolver", "TRUSTED_GATEWAY": True},
    by_the_hosts_own_resolver: {"ACTOR_RESOLVER": "tests.people.who.Partners"},
}


def main() -> None:
    call_command("migrate", run_syncdb=True, verbosity=0)
    call_command("check")
    try:
        for story, changed in STORIES.items():
            with override_settings(AGENT={**settings.AGENT, **changed}):
                story()
    finally:
        dispatch.stop(grace_seconds=5)
        close_threads()


if __name__ == "__main__":
    main()
