"""One database from one URL, with the options that a site under load needs."""

from typing import Any

import environ

# Without IMMEDIATE, a transaction that reads and then writes fails with "database is locked" under load.
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}


def database(url: str) -> dict[str, Any]:
    """Django's settings for the database at this URL."""
    config: dict[str, Any] = dict(environ.Env.db_url_config(url))
    if config["ENGINE"] == "django.db.backends.sqlite3":
        config["OPTIONS"] = {**SQLITE_OPTIONS, **config.get("OPTIONS", {})}
    return config
