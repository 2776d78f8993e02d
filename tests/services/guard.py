"""A server process that ends with us, also when we are killed, and takes its directory along."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

# The shell waits on its standard input, which only we hold open: when we close it, or die in whatever way,
# it stops the server and removes the directory.
SCRIPT = """
exec 2> /dev/null
directory=$1; signal=$2; shift 2
"$@" < /dev/null > "$directory/log" 2>&1 &
server=$!
cat > /dev/null
kill -"$signal" "$server" 2> /dev/null
wait "$server"
cd / && rm -rf "$directory"
"""
UNPRIVILEGED = "nobody"


class ServiceError(RuntimeError):
    """A server did not start; the end of its log says why."""


def unprivileged_user() -> str | None:
    """Whom to run a server as that refuses to be root; None where we are not root ourselves."""
    return UNPRIVILEGED if os.geteuid() == 0 else None


def own_directory(prefix: str, user: str | None) -> Path:
    """A new empty directory that belongs to this user; its path is short enough for a socket in it."""
    base = "/tmp" if os.access("/tmp", os.W_OK) else None
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    if user:
        os.chown(directory, pwd.getpwnam(user).pw_uid, group_of(user))
    return directory


def group_of(user: str) -> int:
    return pwd.getpwnam(user).pw_gid


class Guarded:
    """A running server; `stop` waits until it is gone."""

    def __init__(self, argv: Sequence[str], directory: Path, *, user: str | None, stop_signal: str) -> None:
        self.directory = directory
        self.log = directory / "log"
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", SCRIPT, "guard", str(directory), stop_signal, *argv],
            stdin=subprocess.PIPE,
            cwd=directory,
            user=user,
            group=group_of(user) if user else None,
            extra_groups=[] if user else None,
            start_new_session=True,  # Ctrl-C is for us; we stop the server
        )

    def wait_until(self, ready: Callable[[], bool], *, seconds: float = 30) -> None:
        """Return once the server is ready; stop it and raise when it is not in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if ready():
                return
            if self._shell.poll() is not None:
                break
            time.sleep(0.01)
        log = self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""
        self.stop()
        raise ServiceError(f"the server did not start:\n{log}")

    def stop(self) -> None:
        """End the server and remove its directory; a second call does nothing."""
        if self._shell.stdin and not self._shell.stdin.closed:
            self._shell.stdin.close()
        try:
            self._shell.wait(timeout=10)
        except subprocess.TimeoutExpired:  # a process that we forked still holds the other end
            os.killpg(self._shell.pid, signal.SIGKILL)
            self._shell.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
