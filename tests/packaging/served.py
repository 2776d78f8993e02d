"""The host's own server process, and a visitor who signs in through the host's own form."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.demo_site import Answer, Event, events
from tests.packaging.host import EMAIL, PASSWORD, Environment
from tests.packaging.steps import Typed

WRITTEN_PORT = "8000"
START_SECONDS = 60
FORM = "application/x-www-form-urlencoded"


@dataclass(slots=True)
class Visitor:
    """A browser's cookies and nothing else of it."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    def request(self, method: str, path: str, body: object = None, *, kind: str = "application/json") -> Answer:
        headers = {"Content-Type": kind, "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        headers["X-CSRFToken"] = self.cookies.get("csrftoken", "")
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, data, headers)
            with connection.getresponse() as response:
                for header in response.headers.get_all("Set-Cookie", []):
                    self.cookies |= {name: one.value for name, one in SimpleCookie(header).items()}
                return Answer(status=response.status, headers=response.headers, body=response.read())

    def sign_in(
        self, name: str = EMAIL, password: str = PASSWORD, *, at: str = "/accounts/login/", to: str = "/support/"
    ) -> None:
        self.request("GET", at)
        form = {"username": name, "password": password, "csrfmiddlewaretoken": self.cookies["csrftoken"]}
        answer = self.request("POST", at, urlencode(form), kind=FORM)
        assert (answer.status, answer.headers["Location"]) == (302, to), answer.body

    def ask(self, question: str, **more: object) -> list[Event]:
        answer = self.request("POST", "/agent/chat", {"message": question, **more})
        assert answer.status == 200, answer.body
        return list(events(answer.body.decode()))

    def read(self, path: str) -> Any:
        answer = self.request("GET", path)
        assert answer.status == 200, answer.body
        return answer.json


def frames(stream: list[Event], kind: str) -> list[dict[str, object]]:
    return [event.data for event in stream if event.data.get("kind") == kind]


@contextmanager
def served(step: Typed, environment: Environment, site: Path) -> Iterator[Visitor]:
    """The command of a page that serves the site; of what is written only the port is another."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = tuple(str(port) if word == WRITTEN_PORT else word for word in step.words)
    assert words != step.words, f"{step.words} names no port {WRITTEN_PORT}"
    log = site / f"served-{port}.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            environment.words(words),
            cwd=site,
            env=environment.env(PYTHONUNBUFFERED="1"),
            stdout=out,
            stderr=out,
            start_new_session=True,  # runserver has a child that serves
        )
    try:
        _wait_for(port, process, log)
        yield Visitor(port)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
