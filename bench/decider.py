"""A process that approves and carries out proposals on request: `python -m bench.decider`, one JSON line each way."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import django
from django.core.management import call_command

if os.environ["BENCH_BROKER"]:
    from bench import celery_app  # noqa: F401  (tasks are sent through it)

django.setup()

from bench import agents, counting, deciding  # noqa: F401  (the agents declare themselves)

ANSWERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "timed": lambda asked: deciding.timed(asked["count"]),
    "approved": lambda asked: deciding.approved(asked["count"]),
    "worked": lambda _: deciding.worked(),
    "counted": lambda _: deciding.counted(),
    "check": lambda _: deciding.check(),
}

if __name__ == "__main__":
    counting.watch()
    deciding.watch()
    call_command("migrate", verbosity=0)
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(ANSWERS[question["do"]](question)), flush=True)
