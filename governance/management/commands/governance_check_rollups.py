"""Compare the rollups with the ledger."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agent.errors import AgentError
from governance.days import parse_days
from governance.rollups import build, check
from governance.rollups.marks import USAGE


class Command(BaseCommand):
    help = "Compare each built day with the ledger: rows, tokens, and cost to the nano. Fails when one differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--from", dest="first", metavar="DAY", help="first day, in the reporting time zone")
        parser.add_argument("--to", dest="last", metavar="DAY", help="last day, inclusive")
        parser.add_argument("--repair", action="store_true", help="build the differing days anew")

    def handle(self, *args: object, first: str | None, last: str | None, repair: bool, **options: object) -> None:
        try:
            start, end = parse_days(first, last)
        except AgentError as error:
            raise CommandError(error.message) from error
        found = list(check(start, end))
        for each in found:
            self.stdout.write(f"{each.day} {each.table}.{each.field}: {each.rollup}, the ledger says {each.ledger}")
        days = sorted({each.day for each in found})
        if repair:
            for day in days:
                build(USAGE, day)
            self.stdout.write(f"{len(days)} days built anew.")
        elif days:
            raise CommandError(f"{len(days)} days differ from the ledger.")
        else:
            self.stdout.write("The rollups agree with the ledger.")
