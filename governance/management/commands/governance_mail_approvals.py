"""Tell approvers by e-mail what waits for them."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError, CommandParser

from governance.digest import mail_approvers


class Command(BaseCommand):
    help = "Write to each approver to whom something new waits; run it from time to time. Nothing is told twice."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("inbox", help="the whole address of the page, https://.../admin/governance/approvals/")

    def handle(self, *args: object, inbox: str, **options: object) -> None:
        if urlsplit(inbox).scheme not in {"http", "https"}:
            raise CommandError("inbox: an address that begins with https:// or http://")
        self.stdout.write(f"{mail_approvers(inbox)} letters sent.")
