"""Whether a turn on a long thread costs more than on a short one: a window of 4 messages, and one that summarizes.

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
SIZES = ((20, 8_000, 10, 50_000), (50, 50_000, 4, 110_000))  # turns, bytes of an output, window, goal for the payload
MESSAGES = (100, 10_000)  # of the threads whose window summarizes
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
            _tell_sizes(report, store, child)
            _tell_summaries(report, store, child, arguments.times)


def _tell(report: Report, store: str, child: Child, threads: dict[str, str], times: int) -> None:
    samples = _rounds(child, "load", threads, times)
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


def _tell_sizes(report: Report, store: str, child: Child) -> None:
    report.say()
    found = [
        (
            f"{turns} x {output // 1000} kB",
            window,
            child.ask(do="size", turns=turns, output=output, window=window),
            goal,
        )
        for turns, output, window, goal in SIZES
    ]
    report.table(("turns x output", "window", "bytes loaded", "goal"), found)
    report.results[store]["sizes"] = found


def _tell_summaries(report: Report, store: str, child: Child, times: int) -> None:
    """Whole turns with a window of ten messages that summarizes the rest, after the first one on each thread."""
    report.say()
    made = {str(messages): child.ask(do="long", messages=messages) for messages in MESSAGES}
    threads = {messages: each["thread"] for messages, each in made.items()}
    samples = _rounds(child, "again", threads, times)
    seen = {messages: child.ask(do="looked at", thread=thread) for messages, thread in threads.items()}
    settled = {name: Spread.of(each["settled"] for each in found).scaled(1000) for name, found in samples.items()}
    cpu = {name: Spread.of(each["cpu"] for each in found).scaled(1000) for name, found in samples.items()}
    report.table(
        ("messages", "first turn ms", "then p50 ms", "p95", "min", "cpu p50", "statements", "commits", "bytes"),
        [
            (name, made[name]["first"] * 1000, told.p50, told.p95, told.min, cpu[name].p50, *seen[name].values())
            for name, told in settled.items()
        ],
    )
    growth = {
        "p50": _growth([each.p50 for each in settled.values()]),
        "cpu": _growth([each.p50 for each in cpu.values()]),
        **{name: _growth([each[name] for each in seen.values()]) for name in ("statements", "bytes")},
    }
    report.say(
        f"summarizing, shortest to longest: {', '.join(f'{name} {share:+.1%}' for name, share in growth.items())}"
    )
    report.results[store]["summarizing"] = {
        "firstMs": {name: round(each["first"] * 1000, 2) for name, each in made.items()},
        "ms": {name: each.to_json() for name, each in settled.items()},
        "cpuMs": {name: each.to_json() for name, each in cpu.items()},
        "turns": seen,
        "growth": {name: round(share, 4) for name, share in growth.items()},
    }


def _rounds(child: Child, what: str, threads: dict[str, str], times: int) -> dict[str, list[dict[str, Any]]]:
    samples: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for thread in threads.values():
        child.ask(do=what, thread=thread, times=ROUND)  # warm-up
    while any(len(samples[length]) < times for length in threads):
        for length, thread in threads.items():
            samples[length] += child.ask(do=what, thread=thread, times=min(ROUND, times))
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
