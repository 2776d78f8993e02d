"""Whether a process that serves turns keeps growing: its memory after 1,000 and after 11,000 turns.

`.venv/bin/python -m bench.growth [--turns N] [--first N] [--store sqlite|memory|postgres] [--json FILE]`
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from bench.children import worker
from bench.databases import fresh_database
from bench.report import Report, bench

GOAL_MB = 20
STEP = 1000
MB = 1_000_000


def run(report: Report, arguments: argparse.Namespace) -> None:
    """Small turns on fresh threads, each with a follower; memory is looked at after each thousand."""
    with ExitStack() as stack:
        _, url = stack.enter_context(fresh_database(arguments.store))
        child = stack.enter_context(worker(arguments.store, url))
        report.versions(**child.versions)
        served, found = 0, {}
        for target in _targets(arguments.first, arguments.first + arguments.turns):
            found[target] = child.ask(do="small", turns=target - served)["rss"]
            served = target
            report.say(f"{served:6} turns: {found[served] / MB:.1f} MB")
    grown = (found[served] - found[arguments.first]) / MB
    report.say(f"grew by {grown:.1f} MB in {arguments.turns} turns (goal: less than {GOAL_MB} for 10,000)")
    report.results |= {"goalMb": GOAL_MB, "grownMb": round(grown, 2), "rssBytes": found}


def _targets(first: int, last: int) -> list[int]:
    return sorted({*range(first, last, STEP), last})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.growth", description=__doc__)
    parser.add_argument("--first", type=int, default=1000, help="turns before memory is looked at for the first time")
    parser.add_argument("--turns", type=int, default=10_000, help="turns after that")
    parser.add_argument("--store", default="sqlite", choices=("sqlite", "memory", "postgres"))
    return parser


if __name__ == "__main__":
    bench("growth", _parser(), run)
