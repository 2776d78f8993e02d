"""The network is shut: nothing that runs under the tests may leave this machine."""

from __future__ import annotations

import ipaddress
import sys
from typing import Any

_shut = False


class NetworkShut(RuntimeError):
    """A test, or the code under it, tried to reach another machine."""


def shut() -> None:
    """Refuse every connection and name look-up beyond loopback, for the rest of this process."""
    global _shut
    if not _shut:
        _shut = True
        sys.addaudithook(_refuse)


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if not event.startswith("socket."):
        return
    if event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        address = args[1]
        if isinstance(address, tuple) and not _is_local(address[0]):
            raise NetworkShut(f"{event} to {address!r}: the network is shut in tests")
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"} and not _is_local(args[0]):
        raise NetworkShut(f"{event} of {args[0]!r}: the network is shut in tests")


def _is_local(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode()
    if host in {None, "", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False
