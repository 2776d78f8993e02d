"""Debian's nginx with the sample configuration that the documentation shows, in front of a server of ours."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.services.guard import Guarded, own_directory

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/asgi-and-nginx.md"
SAMPLE = re.compile(r"```nginx\n(.*?)```", re.DOTALL)
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def binary() -> str | None:
    """Debian puts it where only root looks."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def sample() -> str:
    """The configuration as a reader copies it."""
    found = SAMPLE.search(PAGE.read_text())
    assert found, "The page shows no nginx configuration any more."
    return found[1]


def configuration(directory: Path, port: int, upstream: int) -> str:
    """The sample on this port, without the certificate and the files that only the reader has."""
    site = sample()
    for shown, here in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("server 127.0.0.1:8000;", f"server 127.0.0.1:{upstream};"),
        ("mysite.example;", "_;"),
    ):
        assert shown in site, f"The sample has no {shown!r} any more."
        site = site.replace(shown, here)
    temporary = " ".join(f"{name}_temp_path {directory}/{name};" for name in TEMPORARY)
    process = f"pid {directory}/pid; daemon off; error_log stderr;\nevents {{}}\n"
    return f"{process}http {{ access_log off; {temporary}\n{site}}}\n"


@contextmanager
def nginx_before(upstream: int) -> Iterator[int]:
    """The port on which nginx answers for the server on `upstream`."""
    found = binary()
    assert found, "The test of nginx needs it: apt-get install nginx-light"
    directory = own_directory("steward-nginx-", None)
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    (directory / "nginx.conf").write_text(configuration(directory, port, upstream))
    argv = [found, "-p", str(directory), "-e", "stderr", "-c", str(directory / "nginx.conf")]
    process = Guarded(argv, directory, user=None, stop_signal="TERM")
    try:
        process.wait_until(lambda: _accepts(port))
        yield port
    finally:
        process.stop()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
