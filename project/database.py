"""One database from one URL, with the options that a site under load needs."""

from typing import Any

import environ

# Without IMMEDIATE, a transaction that reads and then writes fails with "database is locked" under load.
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}

# Statements are parsed and planned once a connection. Behind PgBouncer in transaction mode leave this out.
POSTGRES_OPTIONS = {"server_side_binding": True, "prepare_threshold": 2}


def database(url: str) -> dict[str, Any]:
    """Django's settings for the database at this URL."""
    config: dict[str, Any] = dict(environ.Env.db_url_config(url))
    if config["ENGINE"] == "django.db.backends.sqlite3":
        config["OPTIONS"] = {**SQLITE_OPTIONS, **config.get("OPTIONS", {})}
    if config["ENGINE"] == "django.db.backends.postgresql":
        config["OPTIONS"] = {**POSTGRES_OPTIONS, **config.get("OPTIONS", {})}
    return config
