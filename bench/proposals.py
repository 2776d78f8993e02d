"""How soon an approved proposal is executed, how many a second, and how often workers are in each other's way.

`.venv/bin/python -m bench.proposals [--approvals N] [--queued N] [--store postgres|sqlite] [--json FILE]`
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.celery import worker
from bench.children import Child, child
from bench.databases import fresh_database
from bench.figures import Spread
from bench.report import Report, bench
from tests.services import valkey_server

GOAL_MS = 100
GOALS = {1: 150, 8: 300}  # a second, by PROPOSAL_CONCURRENCY
GOAL_LOST = 5  # per cent, of the claims of four workers
WORKERS = 4
WARM = 20
RESOLVER = "bench.deciding.Anybody"


def run(report: Report, arguments: argparse.Namespace) -> None:
    """One database for all of it; each part in processes of its own."""
    with ExitStack() as stack:
        directory, url = stack.enter_context(fresh_database(arguments.store))
        _latency(report, arguments.approvals, url, directory)
        _throughput(report, arguments.queued, url)
        _company(report, arguments.queued, url)


def _process(url: str, *, broker: str = "", **settings: object) -> Any:
    told = {"BACKGROUND_ACTOR_RESOLVER": RESOLVER, "RUNNER": "inline", **settings}
    return child([sys.executable, "-m", "bench.decider"], **_env(url, broker, told))


def _env(url: str, broker: str, settings: dict[str, object]) -> dict[str, str]:
    env = {"DJANGO_SETTINGS_MODULE": "bench.settings", "DATABASE_URL": url, "BENCH_BROKER": broker}
    return {**env, "BENCH_AGENT": json.dumps(settings)}


def _latency(report: Report, approvals: int, url: str, directory: Path) -> None:
    spreads = {}
    with _process(url) as web:
        web.ask(do="timed", count=WARM)
        spreads["in the serving process"] = Spread.of(web.ask(do="timed", count=approvals))
    with valkey_server() as broker:
        settings: dict[str, object] = {"RUNNER": "celery", "BACKGROUND_ACTOR_RESOLVER": RESOLVER}
        env = _env(url, broker, settings)
        with _process(url, broker=broker, RUNNER="celery") as web, worker("prefork", directory / "worker.log", env):
            web.ask(do="timed", count=WARM)
            spreads["Celery worker"] = Spread.of(web.ask(do="timed", count=approvals))
    report.table(
        ("ms from approval to executed", "n", "p50", "p95", "max"),
        [(name, told.n, told.p50, told.p95, told.max) for name, told in spreads.items()],
    )
    report.say(f"goal: p95 under {GOAL_MS} ms")
    report.results["latencyMs"] = {name: told.to_json() for name, told in spreads.items()}


def _throughput(report: Report, queued: int, url: str) -> None:
    rows = []
    for concurrency, goal in GOALS.items():
        with _process(url, PROPOSAL_CONCURRENCY=concurrency, EMBEDDED_WORKER=False) as one:
            costs = one.ask(do="counted")
            told = _worked(one, queued)
            one.ask(do="check")
        rate = told["done"] / told["seconds"]
        cpu = told["cpu"] / told["done"] * 1000
        rows.append((concurrency, rate, goal, cpu, costs["statements"], costs["commits"] + costs["own_commits"]))
        report.results[f"concurrency{concurrency}"] = {"perSecond": rate, "cpuMs": cpu, "costs": costs}
    report.table(("PROPOSAL_CONCURRENCY", "a second", "goal", "cpu ms each", "statements", "commits"), rows)


def _worked(process: Child, queued: int) -> dict[str, Any]:
    process.ask(do="approved", count=WARM)
    process.ask(do="worked")
    process.ask(do="approved", count=queued)
    told: dict[str, Any] = process.ask(do="worked")
    return told


def _company(report: Report, queued: int, url: str) -> None:
    with ExitStack() as stack:
        company = [stack.enter_context(_process(url, EMBEDDED_WORKER=False)) for _ in range(WORKERS)]
        company[0].ask(do="approved", count=queued)
        with ThreadPoolExecutor(WORKERS) as threads:
            told = list(threads.map(lambda process: process.ask(do="worked"), company))
        company[0].ask(do="check")
    done, lost = sum(each["done"] for each in told), sum(each["lost"] for each in told)
    share = 100 * lost / (done + lost)
    rate = done / max(each["seconds"] for each in told)
    report.say(f"{WORKERS} workers: {rate:.0f} a second, {share:.2f} % of claims lost (goal: under {GOAL_LOST} %)")
    report.results["company"] = {"perSecond": rate, "lostPercent": share}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.proposals", description=__doc__)
    parser.add_argument("--approvals", type=int, default=200)
    parser.add_argument("--queued", type=int, default=600)
    parser.add_argument("--store", default="postgres", choices=("postgres", "sqlite"))
    return parser


if __name__ == "__main__":
    bench("proposals", _parser(), run)
