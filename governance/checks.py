"""What `manage.py check --database default` says about figures that are not whole (spec 08 §3, §6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import islice

from django.apps import AppConfig
from django.core.checks import CheckMessage, Tags, Warning, register  # noqa: A004  (Django's own name)
from django.db import DatabaseError
from django.utils import timezone

from agent.conf import setting_problems
from agent.models import UsageEntry
from governance.rollups.marks import database, foreign_days

RECENTLY = timedelta(days=7)
NAMED = 5


def unpriced_models() -> list[str]:
    """Models that were used in the last seven days and had no price: what to seed, or to alias."""
    recent = UsageEntry.objects.using(database()).unpriced().filter(created_at__gte=timezone.now() - RECENTLY)
    return list(recent.order_by("model_id").values_list("model_id", flat=True).distinct())


def _database_check(check: Callable[[], Iterator[CheckMessage]]) -> None:
    """Ask it where the database is checked; it is silent before the tables are there."""

    def run(
        app_configs: Sequence[AppConfig] | None = None, databases: Sequence[str] | None = None, **_: object
    ) -> list[CheckMessage]:
        if database() not in (databases or ()) or setting_problems():
            return []
        try:
            return list(check())
        except DatabaseError:
            return []

    run.__name__, run.__doc__ = check.__name__, check.__doc__
    register(run, Tags.database)


def _check_prices() -> Iterator[CheckMessage]:
    """W001: calls that cost nobody knows what."""
    models = unpriced_models()
    if models:
        more = f" and {len(models) - NAMED} more" if len(models) > NAMED else ""
        yield Warning(
            f"Models used in the last 7 days have no price: {', '.join(models[:NAMED])}{more}.",
            hint="manage.py agent_seed_prices, or AGENT['MODEL_ALIASES']; then agent_reprice.",
            id="governance.W001",
        )


def _check_zone() -> Iterator[CheckMessage]:
    """W002: days that were rolled up for another time zone, and are read from the ledger."""
    days = list(islice(foreign_days(), 1))
    if days:
        yield Warning(
            "Rollups were built for another REPORT_TIME_ZONE: their days are read from the base rows, which is slow.",
            hint="manage.py governance_rebuild_rollups",
            id="governance.W002",
        )


_database_check(_check_prices)
_database_check(_check_zone)
