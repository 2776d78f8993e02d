"""Price ledger rows again, with an audit of who, why and how much."""

from __future__ import annotations

import getpass

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agent.conf import agent_settings
from agent.domain.pricing import usd
from agent.errors import AgentError
from governance.days import ONE_DAY, parse_day, start_of
from governance.repricing import Repricing, reprice


class Command(BaseCommand):
    help = "Price unpriced rows with the price in force at each one's time; reported costs are never touched."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--from", dest="first", metavar="DAY", help="first day, in the reporting time zone")
        parser.add_argument("--to", dest="last", metavar="DAY", help="last day, inclusive")
        parser.add_argument("--model", metavar="ID", help="only rows of this model")
        parser.add_argument("--include-estimated", action="store_true", help="also rows whose cost is an estimate")
        parser.add_argument("--dry-run", action="store_true", help="only say what would change")
        parser.add_argument("--reason", required=True, help="why; it is kept in the audit")
        parser.add_argument("--by", default=None, help="who; the system user's name by default")

    def handle(self, *args: object, **options: object) -> None:
        try:
            done = reprice(_order(options), dry_run=bool(options["dry_run"]))
        except AgentError as error:
            raise CommandError(error.message) from error
        verb = "would be priced" if options["dry_run"] else "priced"
        self.stdout.write(
            f"{done.rows} rows {verb}: {usd(done.nanos_before):.9f} USD before, {usd(done.nanos_after):.9f} USD after; "
            f"{done.unpriced} have no price still."
        )


def _order(options: dict[str, object]) -> Repricing:
    zone = agent_settings().report_time_zone
    first, last = options["first"], options["last"]
    return Repricing(
        by=str(options["by"] or f"command:{getpass.getuser()}"),
        reason=str(options["reason"]),
        start=start_of(parse_day("--from", str(first)), zone) if first else None,
        end=start_of(parse_day("--to", str(last)) + ONE_DAY, zone) if last else None,
        model_id=None if options["model"] is None else str(options["model"]),
        include_estimated=bool(options["include_estimated"]),
    )
