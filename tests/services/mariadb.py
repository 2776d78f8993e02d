"""A MariaDB of our own: Debian's `mariadb-server-core`, in a directory and on a socket of its own.

PyPI has no MariaDB, so this one needs the machine's binaries; it touches nothing of a server that is running already.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.guard import Guarded, ServiceError, group_of, own_directory, unprivileged_user

# Debian keeps servers out of an ordinary user's PATH.
PLACES = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
# As Debian sets its own up.
CHARACTERS = ("--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci")
# A test database may be lost with the machine, so nothing waits for the disk.
UNSAFE = ("--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync")


@contextmanager
def mariadb_server() -> Iterator[str]:
    """The URL of a fresh server, for as long as the block runs."""
    server, install = _binary("mariadbd"), _binary("mariadb-install-db")
    user = unprivileged_user()
    directory = own_directory("steward-my-", user)
    data, listening = directory / "data", directory / "socket"
    common = ["--no-defaults", f"--datadir={data}", f"--tmpdir={directory}"]
    _initialise([install, *common, "--auth-root-authentication-method=normal", "--skip-test-db"], directory, user)
    argv = [server, *common, f"--socket={listening}", f"--pid-file={directory}/pid", "--skip-networking", *CHARACTERS]
    process = Guarded([*argv, *UNSAFE], directory, user=user, stop_signal="KILL")
    try:
        process.wait_until(lambda: _accepts(listening))
        yield f"mysql://root@/steward?unix_socket={listening}"
    finally:
        process.stop()


def _binary(name: str) -> str:
    found = shutil.which(name, path=PLACES)
    if found is None:
        raise ServiceError(f"{name} is not on this machine: apt-get install mariadb-server-core")
    return found


def _initialise(argv: list[str], directory: Path, user: str | None) -> None:
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        cwd=directory,
        user=user,
        group=group_of(user) if user else None,
        extra_groups=[] if user else None,
        check=False,
    )
    if done.returncode:
        shutil.rmtree(directory, ignore_errors=True)
        raise ServiceError(f"mariadb-install-db failed:\n{done.stdout}{done.stderr}")


def _accepts(listening: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(listening))
        except OSError:
            return False
        return True
