"""The store on the database of this leg, as the published contracts want it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from agent.store.orm import OrmStore
from agent.testing.contracts import StoreSubject

NOT_STATEMENTS = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")


@contextmanager
def count_queries() -> Iterator[Callable[[], int]]:
    """The number of statements inside; what only marks a transaction is not counted."""
    with CaptureQueriesContext(connection) as captured:
        yield lambda: sum(not query["sql"].upper().startswith(NOT_STATEMENTS) for query in captured.captured_queries)


def orm_subject() -> StoreSubject:
    return StoreSubject(OrmStore(), count_queries=count_queries, thread_ends=connections.close_all)
