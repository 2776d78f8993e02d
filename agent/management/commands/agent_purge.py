"""Remove streams and keys that are past their time."""

from __future__ import annotations

from django.core.management.base import BaseCommand

from agent.flows.upkeep import purge


class Command(BaseCommand):
    help = "Remove streams that were last written longer ago than their TTL, and idempotency keys older than a day."

    def handle(self, *args: object, **options: object) -> None:
        gone = purge()
        self.stdout.write(f"{gone.streams} streams and {gone.keys} keys removed.")
