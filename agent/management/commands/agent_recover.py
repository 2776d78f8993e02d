"""Hand runs that nobody works on to the runner again."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError

from django.core.management.base import BaseCommand, CommandParser

from agent.flows import dispatch
from agent.flows.recovery import recover


class Command(BaseCommand):
    help = "Find runs whose worker is gone or that were never taken up, and work on them until they are settled."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--queued-for",
            type=_seconds,
            default=60,
            metavar="SECONDS",
            help="take queued runs that were last handed over this long ago (default 60)",
        )
        parser.add_argument(
            "--grace", type=_seconds, default=600, metavar="SECONDS", help="how long to work on them (default 600)"
        )

    def handle(self, *args: object, queued_for: float, grace: float, **options: object) -> None:
        found = recover(queued_for=int(queued_for))
        self.stdout.write(f"{found} run{'' if found == 1 else 's'} taken up.")
        dispatch.wait(grace)
        dispatch.stop()


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds
