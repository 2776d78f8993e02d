"""A database of one bench: fresh, and gone with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.postgres import postgres_server


@contextmanager
def fresh_database(store: str) -> Iterator[tuple[Path, str]]:
    """A directory for what else the bench writes, and the URL: PostgreSQL from pip, durable, else SQLite."""
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as directory:
        if store == "postgres":
            with postgres_server(durable=True) as url:
                yield Path(directory), url
        else:
            yield Path(directory), f"sqlite:///{directory}/bench.sqlite3"
