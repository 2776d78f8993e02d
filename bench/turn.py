"""How long a turn takes: 200 deltas, one read tool, 200 deltas, on a fresh thread, one turn at a time.

`.venv/bin/python -m bench.turn [--turns N] [--stores memory,sqlite,postgres] [--no-langgraph] [--log] [--json FILE]`
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.children import Child, worker
from bench.figures import Spread
from bench.langgraph_env import langgraph
from bench.report import Report, Row, bench
from tests.services.postgres import postgres_server

STORES = ("memory", "sqlite", "postgres")
SAVERS = ("sync", "async")
GOALS_MS = {"memory": 2.0, "sqlite": 6.0, "postgres": 10.0}
GOAL_RATIO = 0.5
GOALS_COUNTED = {"statements": 28, "commits": 6, "frame_inserts": 8}
WARM_UP = 30
ROUND = 20  # turns of one kind before the next kind has its round: all see the same minutes
COUNTED = 10
MEASURES = ("terminal", "settled", "cpu", "first", "admitted")

Samples = dict[str, list[dict[str, Any]]]
Serve = Callable[[int], list[dict[str, Any]]]


def run(report: Report, arguments: argparse.Namespace) -> None:
    """Measure every kind in rounds, then count the statements of a turn."""
    stores = arguments.stores.split(",")
    with ExitStack() as stack:
        children, servers = _start(report, stack, stores, with_langgraph=arguments.langgraph)
        samples = _measure(servers, arguments.turns)
        _tell_times(report, samples)
        if arguments.langgraph:
            _tell_ratio(report, samples)
        for store in (store for store in stores if store != "memory"):
            _tell_counts(report, store, children[store], log=arguments.log)


def _start(
    report: Report, stack: ExitStack, stores: list[str], *, with_langgraph: bool
) -> tuple[dict[str, Child], dict[str, Serve]]:
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="steward-bench-"))
    urls = {"memory": "sqlite:///:memory:", "sqlite": f"sqlite:///{Path(directory)}/bench.sqlite3"}
    if "postgres" in stores or with_langgraph:
        urls["postgres"] = stack.enter_context(postgres_server(durable=True))
    children = {store: stack.enter_context(worker(store, urls[store])) for store in stores}
    servers: dict[str, Serve] = {}
    for store, each in children.items():
        servers[store] = _ours(each, followed=True)
        servers[f"{store}, not followed"] = _ours(each, followed=False)
        report.versions(**each.versions)
    if with_langgraph:
        other = stack.enter_context(langgraph(urls["postgres"]))
        report.versions(**{name: found for name, found in other.versions.items() if name != "python"})
        servers |= {f"langgraph {saver}": _theirs(other, saver) for saver in SAVERS}
    return children, servers


def _ours(child: Child, *, followed: bool) -> Serve:
    def serve(turns: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = child.ask(do="big", turns=turns, followed=followed)
        return found

    return serve


def _theirs(child: Child, saver: str) -> Serve:
    """Its stream is read in the same process to its end, when the last checkpoint is written too."""

    def serve(turns: int) -> list[dict[str, Any]]:
        return [
            {"terminal": sample["seconds"], "settled": sample["seconds"], "cpu": sample["cpu"]}
            for sample in child.ask(turns=turns, saver=saver)
        ]

    return serve


def _measure(servers: dict[str, Serve], turns: int) -> Samples:
    samples: Samples = defaultdict(list)
    for serve in servers.values():
        serve(WARM_UP)
    while any(len(samples[name]) < turns for name in servers):
        for name, serve in servers.items():
            samples[name] += serve(min(ROUND, turns))
    return samples


def _tell_times(report: Report, samples: Samples) -> None:
    spreads = {
        name: {
            measure: Spread.of(sample[measure] for sample in found).scaled(1000)
            for measure in MEASURES
            if found[0].get(measure) is not None
        }
        for name, found in samples.items()
    }
    report.say(f"\nms a turn, {len(next(iter(samples.values())))} turns of each in rounds of {ROUND}, one at a time:")
    report.table(
        ("", "goal", "p50", "p95", "min", "stdev", "cpu p50", "first frame p50", "admitted p50"),
        [_row(name, told) for name, told in spreads.items()],
    )
    report.say(
        "p50 to stdev: until the follower saw the terminal frame; not followed: until the run and its frames are stored"
    )
    report.results["ms"] = {
        name: {measure: spread.to_json() for measure, spread in told.items()} for name, told in spreads.items()
    }


def _row(name: str, told: dict[str, Spread]) -> Row:
    main = told.get("terminal", told["settled"])
    others = [told[measure].p50 if measure in told else None for measure in ("cpu", "first", "admitted")]
    return (name, GOALS_MS.get(name), main.p50, main.p95, main.min, main.stdev, *others)


def _tell_ratio(report: Report, samples: Samples) -> None:
    """Against the faster of its two savers."""
    if "postgres" not in samples:
        return
    p50 = {name: Spread.of(sample["terminal"] for sample in samples[name]).p50 for name in _compared()}
    cpu = {name: Spread.of(sample["cpu"] for sample in samples[name]).p50 for name in _compared()}
    theirs, their_cpu = (min(each[f"langgraph {saver}"] for saver in SAVERS) for each in (p50, cpu))
    found = {"p50": round(p50["postgres"] / theirs, 2), "cpu": round(cpu["postgres"] / their_cpu, 2)}
    report.say(f"\nours on PostgreSQL to LangGraph's faster saver: {found['p50']} of its time (goal: {GOAL_RATIO})")
    report.say(f"CPU of the process: {found['cpu']} of its own")
    report.results["ratio"] = {"goal": GOAL_RATIO, **found}


def _compared() -> list[str]:
    return ["postgres", *(f"langgraph {saver}" for saver in SAVERS)]


def _tell_counts(report: Report, store: str, child: Child, *, log: bool) -> None:
    told = child.ask(do="counted", turns=COUNTED, followed=True)
    most = told["most"]
    report.say(f"\n{store}, the most of {COUNTED} turns, frames apart:")
    report.table(("", "goal", "most"), [(name, GOALS_COUNTED.get(name), count) for name, count in most.items()])
    report.results.setdefault("counts", {})[store] = {"goals": GOALS_COUNTED, "most": most}
    if log:
        report.say("\n".join(line.replace("\n", " ")[:160] for line in told["log"]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.turn", description=__doc__)
    parser.add_argument("--turns", type=int, default=200, help="of each kind, after a warm-up")
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--no-langgraph", dest="langgraph", action="store_false")
    parser.add_argument("--log", action="store_true", help="print the statements of a turn")
    return parser


if __name__ == "__main__":
    bench("turn", _parser(), run)
