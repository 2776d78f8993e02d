"""Whether a turn on a long thread costs more than on a short one: loading a window of 4 messages.

`.venv/bin/python -m bench.thread [--lengths 50,500,5000] [--times N] [--stores sqlite,postgres] [--json FILE]`
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.children import Child, worker
from bench.figures import Spread
from bench.report import Report, bench
from tests.services.postgres import postgres_server

STORES = ("sqlite", "postgres")
LENGTHS = (50, 500, 5000)
ROUND = 20  # loads of one length before the next length has its round
GOAL = 0.10
WORK = {"sqlite": "vm steps", "postgres": "rows fetched"}


def run(report: Report, arguments: argparse.Namespace) -> None:
    """Fill each database with threads of every length, then load them in turn."""
    lengths = [int(length) for length in arguments.lengths.split(",")]
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="steward-bench-"))
        for store in arguments.stores.split(","):
            url = f"sqlite:///{Path(directory)}/bench.sqlite3"
            if store == "postgres":
                url = stack.enter_context(postgres_server(durable=True))
            child = stack.enter_context(worker(store, url))
            report.versions(**child.versions)
            report.say(f"\n{store}: writing {sum(lengths)} turns with a tool output of 50 kB each ...")
            threads = child.ask(do="seed", lengths=lengths)
            _tell(report, store, child, threads, arguments.times)


def _tell(report: Report, store: str, child: Child, threads: dict[str, str], times: int) -> None:
    samples = _measure(child, threads, times)
    reads = {length: child.ask(do="read", thread=thread) for length, thread in threads.items()}
    spreads = {length: Spread.of(each["seconds"] for each in found).scaled(1000) for length, found in samples.items()}
    cpu = {length: Spread.of(each["cpu"] for each in found).scaled(1000) for length, found in samples.items()}
    report.table(
        ("turns", "p50 ms", "p95", "min", "stdev", "cpu p50", "messages", "bytes", "statements", WORK[store]),
        [
            (length, told.p50, told.p95, told.min, told.stdev, cpu[length].p50, *reads[length].values())
            for length, told in spreads.items()
        ],
    )
    growth = {
        "p50": _growth([each.p50 for each in spreads.values()]),
        "min": _growth([each.min for each in spreads.values()]),
        "cpu": _growth([each.p50 for each in cpu.values()]),
        **{name: _growth([each[name] for each in reads.values()]) for name in ("bytes", "work")},
    }
    told = ", ".join(f"{name} {share:+.1%}" for name, share in growth.items())
    report.say(f"from the least to the most (goal: within {GOAL:.0%}): {told}")
    report.results[store] = {
        "ms": {length: each.to_json() for length, each in spreads.items()},
        "cpuMs": {length: each.to_json() for length, each in cpu.items()},
        "reads": reads,
        "growth": {name: round(share, 4) for name, share in growth.items()},
        "goal": GOAL,
    }


def _measure(child: Child, threads: dict[str, str], times: int) -> dict[str, list[dict[str, Any]]]:
    samples: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for thread in threads.values():
        child.ask(do="load", thread=thread, times=ROUND)  # warm-up
    while any(len(samples[length]) < times for length in threads):
        for length, thread in threads.items():
            samples[length] += child.ask(do="load", thread=thread, times=min(ROUND, times))
    return samples


def _growth(values: list[float]) -> float:
    return max(values) / min(values) - 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.thread", description=__doc__)
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), help="turns of the threads")
    parser.add_argument("--times", type=int, default=400, help="loads of each thread, after a warm-up")
    parser.add_argument("--stores", default=",".join(STORES))
    return parser


if __name__ == "__main__":
    bench("thread", _parser(), run)
