"""`manage.py agent_sweep_proposals`: expire proposals, execute what was lost, tell outcomes."""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand

from agent.flows.execution import sweep


class Command(BaseCommand):
    help = "Expire action proposals that are due, execute approved ones that wait, and tell outcomes, once."

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's own signature
        self.stdout.write(f"{async_to_sync(sweep)()} proposals moved")
