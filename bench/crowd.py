"""Many turns at once in one process: each paced like a model that speaks, each with a follower.

`.venv/bin/python -m bench.crowd [--turns N] [--over SECONDS] [--stores sqlite,postgres] [--json FILE]`
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from bench.agents import PACED_DELTAS, PACED_MS
from bench.children import worker
from bench.databases import fresh_database
from bench.figures import Spread
from bench.report import Report, bench

GOAL_FIRST_MS = 500
GOAL_SLOWED = 25  # per cent
SPOKEN = PACED_DELTAS * PACED_MS / 1000  # seconds that the model itself takes


def run(report: Report, arguments: argparse.Namespace) -> None:
    """A crowd on each store: when each saw its first text, and by how much it took longer than its model."""
    rows, results = [], {}
    with ExitStack() as stack:
        for store in arguments.stores.split(","):
            _, url = stack.enter_context(fresh_database(store))
            child = stack.enter_context(worker(store, url))
            report.versions(**child.versions)
            told = child.ask(do="crowd", turns=arguments.turns, over=arguments.over)
            first = Spread.of(told["first"]).scaled(1000)
            slowed = Spread.of(told["settled"]).scaled(100 / SPOKEN)
            rows.append((store, first.p50, first.p95, first.max, slowed.p50 - 100, slowed.max - 100, told["cpu"]))
            results[store] = {"firstTextMs": first.to_json(), "percentOfModel": slowed.to_json(), "cpu": told["cpu"]}
    heads = ("store", "first text p50 ms", "p95", "max", "slowed p50 %", "max", "CPU s")
    report.table(heads, rows)
    report.say(f"goals: first text p95 under {GOAL_FIRST_MS} ms, no turn slowed by more than {GOAL_SLOWED} %")
    report.results |= {"goalFirstMs": GOAL_FIRST_MS, "goalSlowedPercent": GOAL_SLOWED, **results}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.crowd", description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--over", type=float, default=5.0, help="seconds over which they are started")
    parser.add_argument("--stores", default="memory,sqlite,postgres")
    return parser


if __name__ == "__main__":
    bench("crowd", _parser(), run)
