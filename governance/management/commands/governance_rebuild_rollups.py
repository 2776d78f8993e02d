"""Build days of the rollups anew."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agent.errors import AgentError
from governance.days import parse_days
from governance.rollups import KINDS, rebuild


class Command(BaseCommand):
    help = "Build every closed day, or those of a range, anew from the base rows."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--from", dest="first", metavar="DAY", help="first day, in the reporting time zone")
        parser.add_argument("--to", dest="last", metavar="DAY", help="last day, inclusive")
        parser.add_argument("--kind", choices=KINDS, help="only this one")

    def handle(
        self, *args: object, first: str | None, last: str | None, kind: str | None, verbosity: int, **options: object
    ) -> None:
        try:
            start, end = parse_days(first, last)
        except AgentError as error:
            raise CommandError(error.message) from error
        built = 0
        for day in rebuild(start, end, kinds=(kind,) if kind else KINDS):
            built += 1
            if verbosity > 1:
                self.stdout.write(f"{day}")
        self.stdout.write(f"{built} days built.")
