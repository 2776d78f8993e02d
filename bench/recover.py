"""How long recovery takes to hand 1,000 lapsed runs over to Celery, and how many statements that costs.

`.venv/bin/python -m bench.recover [--runs N] [--stores sqlite,postgres] [--json FILE]`
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.children import child
from bench.report import Report, bench
from tests.services import valkey_server
from tests.services.postgres import postgres_server

GOAL_SECONDS = 5


def run(report: Report, arguments: argparse.Namespace) -> None:
    """No worker runs: what is measured is finding, marking and sending."""
    rows = []
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="steward-bench-"))
        for store in arguments.stores.split(","):
            url = f"sqlite:///{Path(directory)}/bench.sqlite3"
            if store == "postgres":
                url = stack.enter_context(postgres_server(durable=True))
            broker = stack.enter_context(valkey_server())
            env = {"DJANGO_SETTINGS_MODULE": "bench.settings", "DATABASE_URL": url, "BENCH_BROKER": broker}
            web = stack.enter_context(child([sys.executable, "-m", "bench.remote"], **env))
            told = web.ask(do="recover", runs=arguments.runs)
            rows.append((store, told["found"], told["statements"], told["handedOver"], told["sent"]))
            report.results[store] = told
    report.table(("", "runs", "statements", "handed over s", "sent s"), rows)
    report.say(f"goal: {arguments.runs} runs in under {GOAL_SECONDS} s, and no statement a run")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.recover", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--stores", default="sqlite,postgres")
    return parser


if __name__ == "__main__":
    bench("recover", _parser(), run)
