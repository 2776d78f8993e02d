"""How soon a turn on a Celery worker is seen: Redis, one worker process, nothing else to do.

`.venv/bin/python -m bench.celery [--turns N] [--store postgres|sqlite] [--pool prefork|threads] [--poll-ms N]`

A follower in another process than the worker polls: what it adds is at most `--poll-ms`, whatever the worker does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.children import ROOT, child
from bench.databases import fresh_database
from bench.figures import Spread
from bench.report import Report, bench
from tests.services import valkey_server

GOAL_MS = 100
WARM = 10  # turns before any is counted
TOLD = {
    "admitted": "the send is answered",
    "stored": "first frame stored",
    "seen": "first frame seen in another process",
    "end": "end seen",
}


def run(report: Report, arguments: argparse.Namespace) -> None:
    """Small turns on fresh threads, one at a time, each with a follower in the process that admits."""
    with ExitStack() as stack:
        directory, url = stack.enter_context(fresh_database(arguments.store))
        env = {
            "DJANGO_SETTINGS_MODULE": "bench.settings",
            "DATABASE_URL": url,
            "BENCH_BROKER": stack.enter_context(valkey_server()),
            "BENCH_POLL_MS": str(arguments.poll_ms),
        }
        web = stack.enter_context(child([sys.executable, "-m", "bench.remote"], **env))
        stack.enter_context(worker(arguments.pool, directory / "worker.log", env))
        web.ask(do="turns", turns=WARM)
        samples = web.ask(do="turns", turns=arguments.turns)
    spreads = {name: Spread.of(sample[name] for sample in samples) for name in TOLD}
    report.table(
        (
            f"{arguments.store}, {arguments.pool}, polled every {arguments.poll_ms} ms: ms from the send",
            "p50",
            "p95",
            "min",
            "max",
        ),
        [(TOLD[name], told.p50, told.p95, told.min, told.max) for name, told in spreads.items()],
    )
    report.say(f"goal: first frame p95 under {GOAL_MS} ms")
    report.results |= {"goalMs": GOAL_MS, **{name: told.to_json() for name, told in spreads.items()}}


@contextmanager
def worker(pool: str, log: Path, env: dict[str, str]) -> Iterator[None]:
    command = [sys.executable, "-m", "celery", "-A", "bench.celery_app", "worker", "--pool", pool]
    command += ["--concurrency", "1", "--loglevel", "warning", "--without-gossip", "--without-mingle"]
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **env}, stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.celery", description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--store", default="postgres", choices=("postgres", "sqlite"))
    parser.add_argument("--pool", default="prefork", choices=("prefork", "threads"))
    parser.add_argument(
        "--poll-ms", type=int, default=250, help="how often the follower looks (default: the sink's own)"
    )
    return parser


if __name__ == "__main__":
    bench("celery", _parser(), run)
