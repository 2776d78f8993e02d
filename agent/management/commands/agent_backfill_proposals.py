"""`manage.py agent_backfill_proposals`: let workers see proposals whose index columns are not filled."""

from __future__ import annotations

from argparse import ArgumentTypeError

from django.core.management.base import BaseCommand, CommandParser

from agent.flows.upkeep import backfill_proposals

BATCH_MAX = 1000


class Command(BaseCommand):
    help = (
        "Fill the index columns of action proposals that were written without them (discovery_index_version 0), in "
        "batches, until none is left. Workers do not see a proposal before that."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--batch", type=_batch, default=100, metavar="N", help=f"rows at a time, 1 to {BATCH_MAX} (default: 100)"
        )

    def handle(self, *args: object, batch: int, **options: object) -> None:
        self.stdout.write(f"{backfill_proposals(batch)} proposals indexed.")


def _batch(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= BATCH_MAX:
        raise ArgumentTypeError(f"{text!r} is no number from 1 to {BATCH_MAX}")
    return int(text)
