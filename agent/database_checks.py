"""What is asked of a database before its tables are made: `migrate` and `check --database` ask it."""

from __future__ import annotations

from collections.abc import Sequence

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections, router

from agent.models import Thread


@register(Tags.database)
def check_characters(
    app_configs: Sequence[AppConfig] | None = None, databases: Sequence[str] | None = None, **_: object
) -> list[CheckMessage]:
    """E027: a MySQL or MariaDB database in which an emoji cannot be stored, once a model was paid for it."""
    connection = connections[router.db_for_write(Thread)]
    if connection.vendor != "mysql" or connection.alias not in (databases or ()):
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@character_set_database, @@character_set_connection")
        found = sorted(set(cursor.fetchone()) - {"utf8mb4"})
    if not found:
        return []
    return [
        Error(
            f"The database or its connection speaks {', '.join(found)}, which has no emoji.",
            hint="ALTER DATABASE ... CHARACTER SET utf8mb4, and tables that are there already; no other charset in "
            f"DATABASES[{connection.alias!r}]['OPTIONS'].",
            id="agent.E027",
        )
    ]
