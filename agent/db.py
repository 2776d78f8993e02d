"""The one bridge from async code into the database, and the insert that knows it lost a race."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import IntegrityError, connections, models, transaction

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=models.Model)

THREADS = 8  # how many units of work a process may have open at once; each thread keeps a connection of its own

_executor: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def _pool() -> ThreadPoolExecutor:
    global _executor
    if _executor is None:
        with _lock:
            if _executor is None:
                _executor = ThreadPoolExecutor(THREADS, thread_name_prefix="agent-db")
    return _executor


def _work(call: Callable[[], T]) -> T:
    """Run on a pool thread; drop connections that are stale or broken, before and after."""
    _close_old()
    try:
        return call()
    finally:
        _close_old()


def _close_old() -> None:
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


async def in_db(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run sync code that touches the database on the agent's own bounded threads, one hop."""
    context = contextvars.copy_context()
    work = partial(context.run, _work, partial(call, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_pool(), work)


def close_pool() -> None:
    """Close the pool's connections and end its threads (tests, and the end of a process)."""
    global _executor
    with _lock:
        pool, _executor = _executor, None
    if pool is None:
        return
    barrier = threading.Barrier(THREADS + 1)

    def close() -> None:
        connections.close_all()
        barrier.wait(timeout=10)

    for _ in range(THREADS):
        pool.submit(close)
    barrier.wait(timeout=10)
    pool.shutdown(wait=True)


def insert_or_none(row: M) -> M | None:
    """Insert in a savepoint of its own; None when a unique key was taken: re-read and see who was first."""
    try:
        with transaction.atomic(using=row._state.db):
            row.save(force_insert=True)
    except IntegrityError:
        return None
    return row
