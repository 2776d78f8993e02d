"""Run the suite: `python -m tests [--database sqlite|postgres|mariadb]... [pytest arguments]`.

Each database is a leg with a pytest of its own. Without `--database`: SQLite, then a PostgreSQL that comes from pip.
The MariaDB leg shows the tables, the store, the flows, the sinks and the figures; it needs Debian's
mariadb-server-core. POSTGRES_URL and MARIADB_URL name a server that is already there instead.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.services import mariadb_server, postgres_server

ROOT = Path(__file__).resolve().parent.parent
LEGS = ("sqlite", "postgres", "mariadb")
SERVERS = {"postgres": postgres_server, "mariadb": mariadb_server}
MARIADB_PATHS = ("tests/store", "tests/flows", "tests/models", "tests/sinks", "tests/governance", "tests/console")
NOTHING_COLLECTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    leg: str
    code: int
    ran: int
    failed: int
    seconds: float

    def __str__(self) -> str:
        word = {0: "passed", NOTHING_COLLECTED: "no test"}.get(self.code, "FAILED")
        return f"{self.leg:10} {word:8} {self.ran:5} tests, {self.failed} failed, {self.seconds:.0f} s"


@contextmanager
def database_url(leg: str) -> Iterator[str]:
    """The address for this leg; empty where the tests bring their own file."""
    given = os.environ.get(f"{leg.upper()}_URL", "")
    if given or leg not in SERVERS:
        yield given
        return
    with SERVERS[leg]() as url:
        yield url


def pytest_arguments(leg: str, *, first: bool, given: Sequence[str]) -> list[str]:
    """What the user gave, and around it: two processes, no test twice, the paths that this leg is about."""
    arguments = [*(() if first else ("-m", "not once")), *given]
    if not any(argument.startswith(("-n", "--numprocesses", "--pdb")) for argument in given):
        arguments += ["-n", "2", "--dist", "loadgroup"]
    named = any((ROOT / argument.partition("::")[0]).exists() for argument in given)
    if leg == "mariadb" and not named:
        arguments += MARIADB_PATHS
    return arguments


def run(leg: str, arguments: Sequence[str]) -> Outcome:
    started = time.monotonic()
    with database_url(leg) as url, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *arguments]
        code = subprocess.run(command, cwd=ROOT, env={**os.environ, "DATABASE_URL": url}, check=False).returncode
        ran, failed = _counts(report)
    return Outcome(leg=leg, code=code, ran=ran, failed=failed, seconds=time.monotonic() - started)


def _counts(report: Path) -> tuple[int, int]:
    if not report.exists():
        return 0, 0
    suites = ElementTree.parse(report).getroot().findall("testsuite")
    total = sum(int(suite.get("tests", 0)) for suite in suites)
    failed = sum(int(suite.get("failures", 0)) + int(suite.get("errors", 0)) for suite in suites)
    return total, failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__, allow_abbrev=False)
    parser.add_argument("--database", action="append", choices=LEGS, help="a leg to run; may be given again")
    chosen, given = parser.parse_known_args()
    legs = chosen.database or ["sqlite", "postgres"]
    outcomes = []
    for leg in legs:
        print(f"---- {leg} ----", flush=True)
        outcomes.append(run(leg, pytest_arguments(leg, first=leg == legs[0], given=given)))
    print("\n" + "\n".join(map(str, outcomes)))
    # A selection may leave a leg empty, the whole suite may not.
    fine = {0, NOTHING_COLLECTED} if given else {0}
    return int(any(outcome.code not in fine for outcome in outcomes) or not any(outcome.ran for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
