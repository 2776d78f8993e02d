"""Remove what is past its time: streams, keys, used tokens, old journals; on demand conversations deleted long ago."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import datetime, time

from django.core.management.base import BaseCommand, CommandParser

from agent.conf import agent_settings
from agent.flows.upkeep import purge, purge_deleted_threads


class Command(BaseCommand):
    help = (
        "Remove streams that were last written longer ago than their TTL, idempotency keys older than a day, used "
        "confirm tokens that have expired, and journals of runs settled more than JOURNAL_DAYS ago."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--threads-deleted-before",
            type=_start_of,
            metavar="DAY",
            help="also remove for good what was deleted before this day (2026-03-01, in the reporting time zone): "
            "conversations with their messages, calls, journals and frames; the ledger stays",
        )

    def handle(self, *args: object, threads_deleted_before: datetime | None, **options: object) -> None:
        gone = purge()
        self.stdout.write(
            f"{gone.streams} streams, {gone.keys} keys, {gone.tokens} tokens and {gone.journals} journals removed."
        )
        if threads_deleted_before is not None:
            self.stdout.write(f"{purge_deleted_threads(threads_deleted_before)} conversations removed.")


def _start_of(day: str) -> datetime:
    try:
        return datetime.combine(datetime.fromisoformat(day).date(), time(), agent_settings().report_time_zone)
    except ValueError as error:
        raise ArgumentTypeError(f"{day!r} is no day like 2026-03-01") from error
