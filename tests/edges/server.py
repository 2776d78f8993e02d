"""A real ASGI server in a process of its own, on the database of the tests."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from django.db import connection

ROOT = Path(__file__).resolve().parents[2]
APPLICATION = "tests.edges.live.asgi:application"
START_SECONDS = 60
COUNT_OTHERS = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
    "mysql": "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()",
}


@dataclass(frozen=True)
class Server:
    pid: int
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def open_databases(self) -> int:
        """How many connections to the database the process has."""
        others = COUNT_OTHERS.get(connection.vendor)
        if others is not None:
            with connection.cursor() as cursor:
                if connection.vendor == "postgresql":  # within a transaction it goes on telling what it told first
                    cursor.execute("SELECT pg_stat_clear_snapshot()")
                cursor.execute(others)
                return int(cursor.fetchone()[0])
        name = os.fspath(connection.settings_dict["NAME"])
        found = 0
        for link in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                found += os.readlink(link) == name
            except OSError:  # closed while we looked
                continue
        return found


def basic(name: str, password: str = "demo") -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


def database_url() -> str:
    """The URL of the database that the tests are on."""
    name = os.fspath(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))


def _command(kind: str, port: int) -> list[str]:
    if kind == "daphne":
        return [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), APPLICATION]
    lifespan = ["--lifespan", "on", "--timeout-graceful-shutdown", "1"] if kind == "lifespan" else ["--lifespan", "off"]
    return [
        *(sys.executable, "-m", "uvicorn", "--host", "127.0.0.1", "--port", str(port)),
        *(*lifespan, "--log-level", "warning", APPLICATION),
    ]


@contextmanager
def serve(kind: str, **environment: str) -> Iterator[Server]:
    """Serve until the block ends; the block begins once the server answers. Kinds: daphne, uvicorn, lifespan."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    site = {
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "tests.edges.live.settings",
        "PYTHONPATH": os.fspath(ROOT),
    }
    environ = {**os.environ, **site, **environment}
    process = subprocess.Popen(_command(kind, port), cwd=ROOT, env=environ, start_new_session=True)
    try:
        _wait(process, port)
        yield Server(process.pid, port)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    pause, left = threading.Event(), START_SECONDS * 20
    while left:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            left -= 1
            pause.wait(0.05)
    raise RuntimeError("the server did not come up")
