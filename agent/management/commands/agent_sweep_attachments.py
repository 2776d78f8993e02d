"""`manage.py agent_sweep_attachments --older-than 48h`: files that no message carries; with `--delete` they go."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from datetime import timedelta

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agent.domain.actor import Actor
from agent.errors import AgentError
from agent.flows import attachments

UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_AGE = re.compile(r"([0-9]{1,6})([mhd])\Z")


def age(value: str) -> timedelta:
    """`90m`, `48h` or `30d`."""
    found = _AGE.match(value)
    if found is None:
        raise ArgumentTypeError(f"{value!r} is no age: write 90m, 48h or 30d")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


class Command(BaseCommand):
    help = "List files that were uploaded long ago and that no message carries; with --delete, remove them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--older-than", type=age, required=True, metavar="AGE", help="only files older than this, as 90m, 48h, 30d"
        )
        parser.add_argument("--delete", action="store_true", help="remove them; without it they are only listed")

    def handle(self, *args: object, older_than: timedelta, delete: bool, **options: object) -> None:
        before = timezone.now() - older_than
        found = gone = 0
        try:
            for owner in attachments.owners_of_old_files(before):
                actor = Actor(owner.ref, tenant_ref=owner.tenant_ref)
                for file in attachments.collectable_attachments(actor, older_than=before):
                    found += 1
                    gone += delete and attachments.sweep_one(actor, file.media_id)
                    self.stdout.write(f"{file.media_id}  {owner.ref}  {file.size} bytes  {file.name}")
        except AgentError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{found} file{'' if found == 1 else 's'} that no message carries; {gone} removed.")
