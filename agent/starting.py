"""What a process that drives runs looks at, and makes ready, before it begins."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from django.core.exceptions import ImproperlyConfigured
from django.db import connections, router
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from agent.conf import agent_settings, setting_problems
from agent.models import Thread
from agent.registry import provider_named

OURS = ("agent", "governance")
NOW = {"postgresql": "SELECT clock_timestamp()", "mysql": "SELECT UTC_TIMESTAMP(6)"}

logger = logging.getLogger("agent.starting")


def refuse_wrong_start() -> None:
    """Raise `ImproperlyConfigured` when settings of ours are wrong (agent.E010) or migrations not applied (E001)."""
    if problems := setting_problems():
        raise ImproperlyConfigured("agent.E010: " + " ".join(problems))
    with ThreadPoolExecutor(1) as own_thread:  # whoever starts may be inside an event loop, or about to fork
        own_thread.submit(_look_at_database).result()


def _look_at_database() -> None:
    try:
        refuse_unapplied_migrations()
        warn_of_clocks()
    finally:
        connections.close_all()


def refuse_unapplied_migrations() -> None:
    """Raise `ImproperlyConfigured` unless every migration of our apps is applied."""
    connection = connections[router.db_for_write(Thread)]
    try:
        executor = MigrationExecutor(connection)
        targets = [node for node in executor.loader.graph.leaf_nodes() if node[0] in OURS]
        missing = [f"{migration.app_label}.{migration.name}" for migration, _ in executor.migration_plan(targets)]
    finally:
        connection.close()
    if missing:
        raise ImproperlyConfigured(f"agent.E001: run `manage.py migrate` first; not applied: {', '.join(missing)}")


def warn_of_clocks(clock: Callable[[], datetime] = timezone.now) -> timedelta | None:
    """Warn when this host's clock and that of the database differ by more than a third of a lease; by how much."""
    connection = connections[router.db_for_write(Thread)]
    if connection.vendor not in NOW:
        return None  # SQLite is on this host
    try:
        with connection.cursor() as cursor:
            cursor.execute(NOW[connection.vendor])
            theirs: datetime = cursor.fetchone()[0]
    finally:
        connection.close()
    ahead = clock() - (theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC))
    if abs(ahead) > timedelta(seconds=agent_settings().run_lease_seconds / 3):
        logger.warning("the clock of this host differs from the database's by %s: leases are judged by it", ahead)
    return ahead


def make_ready() -> None:
    """Import what providers import at their first call, which takes seconds, before somebody waits for it."""
    for name in agent_settings().providers:
        preload = getattr(provider_named(name), "preload", None)
        if preload is not None:
            try:
                preload()
            except Exception:
                logger.exception("provider %s could not be made ready", name)
