"""One view of the database for several statements: a page's figures agree while rows are being written."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from governance.base import database

T = TypeVar("T")

_read: ContextVar[dict[Hashable, Any] | None] = ContextVar("governance_read", default=None)


def remembered(key: Hashable, read: Callable[[], T]) -> T:
    """What this view has read under the key already; outside of any view it is read each time."""
    known = _read.get()
    if known is None:
        return read()
    if key not in known:
        known[key] = read()
    found: T = known[key]
    return found


@contextmanager
def one_view() -> Iterator[None]:
    """All statements inside see the same state. Nests; within a transaction of the caller it is that one's view."""
    if _read.get() is not None:
        yield
        return
    token = _read.set({})
    try:
        with _view():
            yield
    finally:
        _read.reset(token)


@contextmanager
def _view() -> Iterator[None]:
    connection = connections[database()]
    connection.ensure_connection()
    if connection.in_atomic_block or _is_viewing(connection):
        yield
    elif connection.vendor == "sqlite":
        with _sqlite_view(connection):
            yield
    else:
        # Of the next transaction alone; PostgreSQL would take it inside of it too, MySQL only before.
        if connection.vendor == "mysql":
            _execute(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with transaction.atomic(using=connection.alias):
            if connection.vendor == "postgresql":
                _execute(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield


@contextmanager
def _sqlite_view(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """A transaction that only reads: Django's would take the writer's lock (`transaction_mode` IMMEDIATE)."""
    _execute(connection, "BEGIN DEFERRED")
    try:
        yield
    finally:
        _execute(connection, "ROLLBACK")


def _is_viewing(connection: BaseDatabaseWrapper) -> bool:
    return connection.vendor == "sqlite" and bool(connection.connection.in_transaction)


def _execute(connection: BaseDatabaseWrapper, sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
