"""Write believable data, the same for the same seed."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError
from django.utils import timezone

from agent.conf import agent_settings
from agent.errors import AgentError
from governance.days import parse_day, today
from governance.rollups import rebuild
from governance.sample import Sample, make


class Command(BaseCommand):
    help = "Write months of believable conversations, runs, calls and ledger rows beside what is there."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rows", type=int, default=20_000, help="ledger rows (default 20,000)")
        parser.add_argument("--seed", type=int, default=1, help="the same seed and day make the same rows (default 1)")
        parser.add_argument("--days", type=int, default=120, help="how far back they reach (default 120)")
        parser.add_argument("--until", metavar="DAY", help="the last day (default today)")
        parser.add_argument("--force", action="store_true", help="also where DEBUG is off")

    def handle(
        self, *args: object, rows: int, seed: int, days: int, until: str | None, force: bool, **options: object
    ) -> None:
        if not settings.DEBUG and not force:
            raise CommandError("These rows are invented: where DEBUG is off, say --force.")
        if rows < 1 or days < 1:
            raise CommandError("--rows and --days: a whole number from 1 up.")
        try:
            last = parse_day("--until", until) if until else today(agent_settings().report_time_zone)
        except AgentError as error:
            raise CommandError(error.message) from error
        sample = Sample(rows=rows, seed=seed, days=days, last=last, until=None if until else timezone.now())
        try:
            written = make(sample)
        except IntegrityError as error:
            raise CommandError("These rows are there already: say another --seed.") from error
        for table, number in written.items():
            self.stdout.write(f"{number:>9} {table}")
        built = sum(1 for _ in rebuild())
        self.stdout.write(f"{built:>9} days rolled up")
