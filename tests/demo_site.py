"""The demo as a person starts it: a process of its own with data of its own, on a port that was free."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPMessage, HTTPResponse
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = re.compile(r"Chat +(http://\S+)/")
START_SECONDS = 60
STOP_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event; `id` is None on those that have none."""

    name: str
    id: str | None
    data: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True, kw_only=True)
class DemoSite:
    """A running demo. `finish` ends it as Ctrl-C does and answers its exit code; `output` is all it printed."""

    process: subprocess.Popen[str]
    url: str
    lines: list[str] = field(default_factory=list)
    _cookies: dict[str, dict[str, str]] = field(default_factory=dict)

    def finish(self) -> int:
        self.process.send_signal(signal.SIGINT)
        rest, _ = self.process.communicate(timeout=STOP_SECONDS)
        self.lines.append(rest)
        return self.process.returncode

    @property
    def output(self) -> str:
        return "".join(self.lines)

    @contextmanager
    def opened(
        self, method: str, path: str, *, user: str | None = None, body: object = None, headers: Mapping[str, str] = {}
    ) -> Iterator[HTTPResponse]:
        """The open response to one request, as the named account or as nobody."""
        sent = {"Content-Type": "application/json", **(self._session(user) if user else {}), **headers}
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        with closing(HTTPConnection(*self._address(), timeout=60)) as connection:
            connection.request(method, path, data, sent)
            with connection.getresponse() as response:
                yield response

    def request(
        self, method: str, path: str, *, user: str | None = None, body: object = None, headers: Mapping[str, str] = {}
    ) -> Answer:
        """The whole answer to one request."""
        with self.opened(method, path, user=user, body=body, headers=headers) as response:
            return Answer(status=response.status, headers=response.headers, body=response.read())

    def ask(self, question: str, *, user: str = "alice", **body: object) -> list[Event]:
        """The whole stream of events that a question gets."""
        answer = self.request("POST", "/agent/chat", user=user, body={"message": question, **body})
        assert answer.status == 200, answer.body
        return list(events(answer.body.decode()))

    def _address(self) -> tuple[str, int]:
        address = urlsplit(self.url)
        return str(address.hostname), int(address.port or 80)

    def browser_cookies(self, user: str) -> list[dict[str, str]]:
        """The same session for a browser."""
        return [{"name": name, "value": value, "url": self.url} for name, value in self._cookies_of(user).items()]

    def _session(self, user: str) -> dict[str, str]:
        cookies = self._cookies_of(user)
        header = "; ".join(f"{name}={value}" for name, value in cookies.items())
        return {"Cookie": header, "X-CSRFToken": cookies["csrftoken"]}

    def _cookies_of(self, user: str) -> dict[str, str]:
        """Signed in through the site's own form, once an account: checking a password takes half a second."""
        if user not in self._cookies:
            token = _cookie(self.request("GET", "/login/"), "csrftoken")
            form = urlencode({"username": user, "password": "demo", "csrfmiddlewaretoken": token})
            kind = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"csrftoken={token}"}
            signed_in = self.request("POST", "/login/", body=form, headers=kind)
            assert signed_in.status == 302, signed_in.body
            self._cookies[user] = {name: _cookie(signed_in, name) for name in ("csrftoken", "sessionid")}
        return self._cookies[user]


def _cookie(answer: Answer, name: str) -> str:
    found: SimpleCookie = SimpleCookie()
    for header in answer.headers.get_all("Set-Cookie", []):
        found.load(header)
    return found[name].value


def events(text: str) -> Iterator[Event]:
    """The events of a stream; comments are passed over."""
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if lines:
            yield Event(lines.get("event", "message"), lines.get("id"), json.loads(lines["data"]))


def said(stream: Sequence[Event]) -> str:
    """The text of the answer."""
    return "".join(str(event.data["text"]) for event in stream if event.data.get("kind") == "text")


def environment(database: Path, **more: str) -> dict[str, str]:
    """Ours, with a database for this site and without anybody's key for a model."""
    keys = {"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "DATABASE_URL", "DJANGO_SETTINGS_MODULE"}
    ours = {name: value for name, value in os.environ.items() if name not in keys}
    files = str(database.parent / "files")
    site = {"DATABASE_URL": f"sqlite:///{database}", "ATTACHMENTS_FOLDER": files, "HOST": "127.0.0.1", "PORT": "0"}
    return {**ours, **site, **more}


def manage(*arguments: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """One management command of the demo project, to its end."""
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, text=True, capture_output=True, timeout=120, check=False)


def prepare(env: Mapping[str, str]) -> None:
    """What `make demo` does before it serves."""
    for command in (["migrate", "--verbosity", "0"], ["demo_data"]):
        done = manage(*command, env=env)
        assert done.returncode == 0, done.stderr


def prepared(directory: Path) -> Path:
    """A database as the first `make demo` leaves it before it serves."""
    database = directory / "demo.sqlite3"
    prepare(environment(database))
    return database


def filled(database: Path, *, rows: int) -> Path:
    """A prepared database with ledger rows of some believable weeks beside its accounts and its shop."""
    done = manage("agent_demo_data", "--rows", str(rows), "--days", "70", env=environment(database))
    assert done.returncode == 0, done.stderr
    return database


def start(env: Mapping[str, str]) -> DemoSite:
    """Serve, and return as soon as the address is printed."""
    process = subprocess.Popen(
        [sys.executable, "-W", "default", "manage.py", "demo"],
        cwd=ROOT,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    deadline = time.monotonic() + START_SECONDS
    for line in process.stdout:
        lines.append(line)
        found = ADDRESS.search(line)
        if found:
            return DemoSite(process=process, url=found[1], lines=lines)
        assert time.monotonic() < deadline, "".join(lines)
    process.wait(timeout=STOP_SECONDS)
    raise AssertionError("The demo ended at once:\n" + "".join(lines))


@contextmanager
def demo_site(database: Path, **more: str) -> Iterator[DemoSite]:
    """A demo on its prepared database, for as long as the block runs; `more` for its environment."""
    site = start(environment(database, **more))
    try:
        yield site
    finally:
        if site.process.poll() is None:
            site.process.kill()
            site.process.communicate()
