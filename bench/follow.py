"""How soon a frame is seen in another process, and what it costs to come back to a stream.

`.venv/bin/python -m bench.follow [--frames N] [--json FILE]`

One process writes a frame every 20 ms, another follows: from the frame's commit until the follower has it. Then a
follower comes back at frame 1,800 of 2,000, again and again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from agent.domain.ids import new_id
from bench.children import Child, child
from bench.figures import Spread
from bench.report import Report, bench
from tests.services import postgres_server, valkey_server

GOAL_MS = 20.0
RESUME_GOAL_MS = 5.0
RESUMED = {"frames": 2000, "after": 1800, "times": 200}
WARM = 20  # frames before any is counted


def run(report: Report, arguments: argparse.Namespace) -> None:
    """Every sink in turn, each in two fresh processes."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steward-bench-")))
        postgres = stack.enter_context(postgres_server(durable=True))
        redis = stack.enter_context(valkey_server())
        sqlite = f"sqlite:///{directory}/bench.sqlite3"
        sinks: dict[str, tuple[str, dict[str, Any]]] = {
            "PostgreSQL alone (LISTEN/NOTIFY)": (postgres, {}),
            "Redis": (postgres, {"SINK": "redis", "SINK_OPTIONS": {"url": redis}}),
            "SQLite, polled every 250 ms": (sqlite, {}),
        }
        found = {name: _measured(url, settings, arguments.frames) for name, (url, settings) in sinks.items()}
    report.say(f"\nms from the commit of a frame to a follower in another process, {arguments.frames} frames:")
    heads = ("", "goal p95", "p50", "p95", "max")
    report.table(heads, [(name, _goal(name), *_told(spread)) for name, (spread, _) in found.items()])
    report.say(f"\nms to come back at frame {RESUMED['after']} of {RESUMED['frames']}, {RESUMED['times']} times:")
    report.table(heads, [(name, RESUME_GOAL_MS, *_told(spread)) for name, (_, spread) in found.items()])
    report.results["follow"] = {name: spread.to_json() for name, (spread, _) in found.items()}
    report.results["resume"] = {name: spread.to_json() for name, (_, spread) in found.items()}


def _goal(name: str) -> float | None:
    return None if "polled" in name else GOAL_MS


def _told(spread: Spread) -> tuple[float, float, float]:
    return spread.p50, spread.p95, spread.max


def _measured(url: str, settings: dict[str, Any], frames: int) -> tuple[Spread, Spread]:
    env = {"DJANGO_SETTINGS_MODULE": "bench.settings", "DATABASE_URL": url, "BENCH_AGENT": json.dumps(settings)}
    command = [sys.executable, "-m", "bench.streams"]
    with child(command, BENCH_MIGRATE="1", **env) as writer, child(command, **env) as follower:
        return _followed(writer, follower, frames).scaled(1000), _resumed(writer, follower).scaled(1000)


def _followed(writer: Child, follower: Child, frames: int) -> Spread:
    run_id = new_id()
    writer.ask(do="run", run_id=run_id)
    follower.ask(do="follow", run_id=run_id, after=0)
    written = writer.ask(do="write", run_id=run_id, frames=WARM + frames, paced=True)
    seen = follower.answer()[:-1]
    return Spread.of(max(0.0, there - here) for here, there in zip(written[WARM:], seen[WARM:], strict=True))


def _resumed(writer: Child, follower: Child) -> Spread:
    run_id = new_id()
    writer.ask(do="run", run_id=run_id)
    writer.ask(do="write", run_id=run_id, frames=RESUMED["frames"], paced=False)
    follower.ask(do="resume", run_id=run_id, after=RESUMED["after"], times=WARM)
    return Spread.of(follower.ask(do="resume", run_id=run_id, after=RESUMED["after"], times=RESUMED["times"]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.follow", description=__doc__)
    parser.add_argument("--frames", type=int, default=300, help="of each sink, after a warm-up")
    return parser


if __name__ == "__main__":
    bench("follow", _parser(), run)
