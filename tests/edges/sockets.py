"""A client of a socket over a real connection: says things, and hears what is said until what it waits for."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.edges.server import Server

SECONDS: Final = 30
Said = dict[str, Any]


class Phone:
    """One open socket; `heard` is all that the server has said, pings left out."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.heard: list[Said] = []
        self._refs = map(str, itertools.count(1))

    def say(self, kind: str, **fields: object) -> str:
        """Say it, under a new ref; to a server that has closed meanwhile, in vain."""
        ref = next(self._refs)
        with suppress(ConnectionClosed):
            self.connection.send(json.dumps({"type": kind, "ref": ref, **fields}))
        return ref

    def hear(self) -> Said:
        """The next thing that is said; pings are silence."""
        deadline = time.monotonic() + SECONDS
        while (said := json.loads(self.connection.recv(timeout=deadline - time.monotonic())))["type"] == "ping":
            continue
        self.heard.append(said)
        return dict(said)

    def until(self, true: Callable[[Said], object]) -> list[Said]:
        """All that is said up to the first message of which it is true."""
        start = len(self.heard)
        while not true(self.hear()):
            continue
        return self.heard[start:]

    def ask(self, kind: str, **fields: object) -> Said:
        """Say it, and what is said about it; what else is heard meanwhile is kept."""
        ref = self.say(kind, **fields)
        return self.until(lambda said: said.get("ref") == ref)[-1]

    def closed(self) -> int | None:
        """Hear all until the server closes; with which code."""
        with suppress(ConnectionClosed):
            while True:
                self.hear()
        return self.connection.close_code


def frames(said: list[Said], run_id: str) -> list[tuple[int, Said]]:
    """The numbered frames of one run."""
    return [(one["id"], one["frame"]) for one in said if one["type"] == "frame" and one["runId"] == run_id]


def text(numbered: list[tuple[int, Said]]) -> str:
    return "".join(frame["text"] for _, frame in numbered if frame["kind"] == "text")


def session_of(user: User) -> str:
    """A session of the user as the site's own login makes it."""
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


@contextmanager
def phone(
    server: Server, session: str | None, *, path: str = "/ws/agent/", origin: str | None = "", **headers: str
) -> Iterator[Phone]:
    """A socket as a page of the site opens it; `origin` None sends none."""
    cookie = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"} if session else {}
    with connect(
        f"ws://127.0.0.1:{server.port}{path}",
        origin=server.url if origin == "" else origin,  # type: ignore[arg-type]
        additional_headers={**cookie, **headers},
        max_size=None,
        open_timeout=SECONDS,
        close_timeout=SECONDS,
        proxy=None,
    ) as connection:
        yield Phone(connection)
