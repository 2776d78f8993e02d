"""What a process that drives runs looks at, and makes ready, before it begins."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from django.core.exceptions import ImproperlyConfigured
from django.db import connections, router
from django.db.migrations.executor import MigrationExecutor

from agent.conf import agent_settings, setting_problems
from agent.models import Thread
from agent.registry import provider_named

OURS = ("agent", "governance")

logger = logging.getLogger("agent.starting")


def refuse_wrong_start() -> None:
    """Raise `ImproperlyConfigured` when settings of ours are wrong (agent.E010) or migrations not applied (E001)."""
    if problems := setting_problems():
        raise ImproperlyConfigured("agent.E010: " + " ".join(problems))
    with ThreadPoolExecutor(1) as own_thread:  # whoever starts may be inside an event loop, or about to fork
        own_thread.submit(refuse_unapplied_migrations).result()


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


def make_ready() -> None:
    """Import what providers import at their first call, which takes seconds, before somebody waits for it."""
    for name in agent_settings().providers:
        preload = getattr(provider_named(name), "preload", None)
        if preload is not None:
            try:
                preload()
            except Exception:
                logger.exception("provider %s could not be made ready", name)
