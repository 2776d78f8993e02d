"""Counting what one turn sends to the database, on every connection of the process.

Only what Django itself logs is counted, so it costs nothing while nobody counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

FRAMES = "agent_stream_frame"
OPENS, CLOSES = ("BEGIN", "START"), ("COMMIT", "ROLLBACK")
INNER = ("SAVEPOINT", "RELEASE", "ROLLBACK TO")
WRITES = ("INSERT", "UPDATE", "DELETE")

_connections: list[BaseDatabaseWrapper] = []
_counting = False


@dataclass(slots=True)
class Counts:
    """Of one turn. What touches frames alone, and the transactions that hold nothing else, are counted apart."""

    statements: int = 0
    commits: int = 0  # explicit ones
    own_commits: int = 0  # writes outside of a transaction, which commit by themselves
    savepoints: int = 0
    frame_inserts: int = 0
    frame_statements: int = 0  # the inserts among them
    frame_commits: int = 0
    log: list[str] = field(default_factory=list)  # in order on each connection

    def to_json(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__ if name != "log"}


def watch() -> None:
    """Know every connection from now on; call it before the first one is made."""
    connection_created.connect(_remember, weak=False, dispatch_uid="bench.counting")


def open_connections() -> int:
    """How many connections this process holds open, on all of its threads."""
    return sum(connection.connection is not None for connection in _connections)


def _remember(connection: BaseDatabaseWrapper, **_: object) -> None:
    if connection not in _connections:
        _connections.append(connection)
    connection.force_debug_cursor = _counting


@contextmanager
def counted() -> Iterator[Counts]:
    """The counts of the block, filled in at its end."""
    global _counting
    counts, _counting = Counts(), True
    for connection in _connections:
        connection.queries_log.clear()
        connection.force_debug_cursor = True
    try:
        yield counts
    finally:
        _counting = False
        for number, connection in enumerate(_connections):
            connection.force_debug_cursor = False
            _count(counts, number, [_plain(entry) for entry in connection.queries_log])


def _plain(entry: dict[str, Any]) -> str:
    return str(entry["sql"]).strip()


def _count(counts: Counts, number: int, statements: list[str]) -> None:
    transaction: list[bool] | None = None  # of each statement in it: whether it touches frames
    for sql in statements:
        word = sql.upper()
        counts.log.append(f"{number}: {sql}")
        if word.startswith(INNER):
            counts.savepoints += word.startswith("SAVEPOINT")
        elif word.startswith(OPENS):
            transaction = []
        elif word.startswith(CLOSES):
            _close(counts, word, transaction)
            transaction = None
        else:
            frames = bool(re.search(rf"\b{FRAMES}\b", sql))
            _statement(counts, word, frames=frames, alone=transaction is None)
            if transaction is not None:
                transaction.append(frames)


def _close(counts: Counts, word: str, transaction: list[bool] | None) -> None:
    if not word.startswith("COMMIT"):
        return
    if transaction and all(transaction):
        counts.frame_commits += 1
    else:
        counts.commits += 1


def _statement(counts: Counts, word: str, *, frames: bool, alone: bool) -> None:
    if frames:
        counts.frame_statements += 1
        counts.frame_inserts += word.startswith(("INSERT", "WITH"))
    else:
        counts.statements += 1
        counts.own_commits += alone and word.startswith(WRITES)
