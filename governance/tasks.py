"""The task of Celery that keeps the rollups: every 5 minutes, safe to run twice or never."""

from __future__ import annotations

from celery import shared_task

from governance import rollups


@shared_task(name="governance.roll_up", acks_late=True, ignore_result=True)
def roll_up() -> None:
    """Build closed days that are not built, dirty, or had rows settled since."""
    rollups.roll_up()
