"""What 1,000 runs cost a process while they wait for a person: workers, threads, connections, memory.

`.venv/bin/python -m bench.parked [--runs N] [--stores sqlite,postgres] [--json FILE]`
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from bench.children import worker
from bench.databases import fresh_database
from bench.report import Report, bench

HEADS = ("", "being driven", "threads", "connections", "tasks of the loop", "memory MB")
COUNTED = ("driven", "threads", "connections", "tasks")


def run(report: Report, arguments: argparse.Namespace) -> None:
    """What the process holds after one run was parked, after a thousand, and once one of them went on."""
    with ExitStack() as stack:
        for store in arguments.stores.split(","):
            _, url = stack.enter_context(fresh_database(store))
            child = stack.enter_context(worker(store, url))
            report.versions(**child.versions)
            told = {"one waits": child.ask(do="parked", runs=1)}
            told[f"{arguments.runs} wait"] = child.ask(do="parked", runs=arguments.runs - 1)
            told["one is approved"] = child.ask(do="approved")
            report.say(f"{store}:")
            rows = [(name, *(held[each] for each in COUNTED), held["rss"] / 1e6) for name, held in told.items()]
            report.table(HEADS, rows)
            report.results[store] = told


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.parked", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--stores", default="sqlite,postgres")
    return parser


if __name__ == "__main__":
    bench("parked", _parser(), run)
