"""Insert dated prices from the installed price data."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agent.errors import AgentError
from governance.seeds import seed


class Command(BaseCommand):
    help = "Insert what is missing of the models' prices, from the extra `prices`. No row is changed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model", action="append", default=[], metavar="ID", help="only this one; may be repeated")

    def handle(self, *args: object, model: list[str], **options: object) -> None:
        try:
            done = seed(model)
        except AgentError as error:
            raise CommandError(error.message) from error
        for price in done.added:
            since = f"{price.effective_from:%Y-%m-%d}" if price.effective_from else "now"
            self.stdout.write(f"{price.model_id} from {since} ({price.note})")
        for name in done.kept:
            self.stdout.write(f"{name}: the price that was set here stays in force")
        for name in done.unknown:
            self.stderr.write(f"{name}: the price data does not know it")
        if model and done.unknown:
            raise CommandError(f"{len(done.added)} prices added from {done.version}; not all that was named is known.")
        self.stdout.write(f"{len(done.added)} prices added from {done.version}.")
