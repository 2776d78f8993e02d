"""Who holds leases: this process by name, and whether another one of this host still exists."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

PROC = Path("/proc")
STATE, STARTED = 0, 19  # fields of /proc/<pid>/stat behind the name of the command
DEAD = {"Z", "X"}  # ended, and its parent has not looked yet


def owner_name() -> str:
    """`host:pid:random`; the random part carries when the process started, to tell a re-used process id apart."""
    started = _stat(os.getpid())[STARTED:][:1]
    return f"{socket.gethostname()}:{os.getpid()}:{'-'.join([secrets.token_hex(4), *started])}"


def this_process() -> str:
    """The name under which this process holds its leases."""
    return _own


def _rename() -> None:
    global _own
    _own = owner_name()


def is_gone(owner: str) -> bool:
    """Whether the holder was a process of this host that no longer exists; False whenever that is not certain."""
    host, *numbers = owner.rsplit(":", 2)
    if owner == _own or host != socket.gethostname() or len(numbers) != 2 or not numbers[0].isdecimal():
        return False
    pid, (_, _, started) = int(numbers[0]), numbers[1].partition("-")
    if pid == os.getpid():
        return True  # this process has another name
    return pid > 0 and (not _exists(pid) or _is_another(pid, started))


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # another user's, or nothing that we can ask about
    return not DEAD & {*_stat(pid)[: STATE + 1]}


def _is_another(pid: int, started: str) -> bool:
    now = _stat(pid)[STARTED:][:1]
    return bool(started and now) and now != [started]


def _stat(pid: int) -> list[str]:
    """What the kernel says about a process; nothing where there is no /proc."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


_own = owner_name()
os.register_at_fork(after_in_child=_rename)
