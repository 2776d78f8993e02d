"""The site's own permissions and throttles hold on sockets as over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.test import override_settings
from rest_framework.throttling import BaseThrottle

from agent.api.views.chat import ChatView
from agent.consumers import AgentConsumer
from agent.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

ORIGIN = [(b"origin", b"http://testserver"), (b"host", b"testserver")]


class Once(BaseThrottle):
    """A throttle of the host's: one request, then no more."""

    asked = 0

    def allow_request(self, request: object, view: object) -> bool:
        type(self).asked += 1
        return type(self).asked == 1

    def wait(self) -> float:
        return 2.0


def answers(user: User, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """What is said to each of these messages."""

    async def talk() -> list[dict[str, Any]]:
        socket = WebsocketCommunicator(AgentConsumer(), "/ws/agent/", headers=ORIGIN)
        cast("dict[str, Any]", socket.scope)["user"] = user
        connected, _ = await socket.connect(timeout=10)
        assert connected
        said = []
        for number, message in enumerate(messages):
            await socket.send_to(text_data=json.dumps({"ref": str(number), **message}))
            said.append(await _answer(socket, str(number)))
        await socket.disconnect(timeout=10)
        return said

    return asyncio.run(talk())


async def _answer(socket: WebsocketCommunicator, ref: str) -> dict[str, Any]:
    while True:
        said: dict[str, Any] = json.loads(await socket.receive_from(timeout=10))
        if said.get("ref") == ref:
            return said


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice")


@override_settings(AGENT={"PERMISSION_CLASSES": ["tests.edges.urls.Closed"]}, ALLOWED_HOSTS=["testserver"])
def test_the_hosts_permissions_refuse_a_message_and_keep_the_socket(alice: User) -> None:
    send = {"type": "send", "message": "Hello"}
    watch = {"type": "watch", "threadId": "t"}
    said = answers(alice, send, watch, {"type": "ping"})
    assert [(one["type"], one.get("status"), one.get("code")) for one in said[:2]] == [("error", 403, "forbidden")] * 2
    assert said[2]["type"] == "pong"
    assert not Run.objects.exists()


@override_settings(ALLOWED_HOSTS=["testserver"])
def test_the_hosts_throttles_count_messages_with_requests(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    Once.asked = 0
    monkeypatch.setattr(ChatView, "throttle_classes", [Once])
    unknown = {"type": "send", "message": "Hello", "threadId": "none"}
    first, second = answers(alice, unknown, unknown)
    assert (first["status"], first["code"]) == (404, "not_found")
    assert (second["status"], second.get("code")) == (429, None)
