"""The one bridge from async code into the database, and the insert that knows it lost a race."""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import DatabaseError, IntegrityError, connections, models, transaction

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=models.Model)

DB_THREADS = 8  # how many units of work a process may have open at once; each thread keeps a connection of its own
TOOL_THREADS = 32  # bodies of sync tools, which may be slow: they never hold up the units of work
IDLE_SECONDS = 60  # a thread without work ends after that, and its connections with it

_POSTGRES_TRANSIENT = frozenset({"40001", "40P01", "55P03"})  # serialization, deadlock, lock not available
_MYSQL_TRANSIENT = frozenset({1020, 1205, 1213, 3572})  # changed since read (MariaDB), lock wait, deadlock, NOWAIT
_SQLITE_TRANSIENT = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class Threads:
    """A bounded pool of daemon threads with Django's connection hygiene.

    Not a `ThreadPoolExecutor`: that one refuses work from the moment the main thread ends, which is when a process
    still has to hand its runs over.
    """

    def __init__(self, size: int, name: str) -> None:
        self._size, self._name = size, name
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._lock = threading.Lock()
        self._pid = os.getpid()

    async def run(self, call: Callable[[], T]) -> T:
        """The call's answer, from one of the threads; an awaiter that is cancelled leaves the work to end by itself."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._submit(partial(_answer, call, loop, future))
        return await future

    def close(self) -> None:
        """End the threads and their connections when what they have in hand is done."""
        with self._lock:
            threads, self._threads = self._threads, []  # a new list: who is not on it is not counted idle
            self._idle = 0
            for _ in threads:
                self._work.put(None)
        for thread in threads:
            thread.join(timeout=10)

    def _submit(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._pid != os.getpid():  # a fork has the list but not the threads
                self._threads, self._idle, self._pid = [], 0, os.getpid()
            if self._idle:
                self._idle -= 1
            elif len(self._threads) < self._size:
                thread = threading.Thread(
                    target=self._serve, args=(self._threads,), name=f"{self._name}-{len(self._threads)}", daemon=True
                )
                self._threads.append(thread)
                thread.start()
        self._work.put(work)

    def _serve(self, threads: list[threading.Thread]) -> None:
        try:
            while (work := self._next(threads)) is not None:
                work()
                del work  # else it keeps what it worked on alive until the next one
                with self._lock:
                    self._idle += threads is self._threads
        finally:
            connections.close_all()

    def _next(self, threads: list[threading.Thread]) -> Callable[[], None] | None:
        while True:
            try:
                return self._work.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._idle and threads is self._threads:  # else work is on its way to this thread
                        self._idle -= 1
                        threads.remove(threading.current_thread())
                        return None


def _answer(call: Callable[[], T], loop: asyncio.AbstractEventLoop, future: asyncio.Future[T]) -> None:
    _close_unusable()
    try:
        deliver: partial[None] = partial(_set, future.set_result, future, call())
    except BaseException as error:
        deliver = partial(_set, future.set_exception, future, error)
    try:
        loop.call_soon_threadsafe(deliver)
    except RuntimeError:  # the loop has ended, and whoever waited with it
        return


def _set(setter: Callable[[T], object], future: asyncio.Future[Any], outcome: T) -> None:
    if not future.done():
        setter(outcome)


def _close_unusable() -> None:
    """Drop connections that are broken, or past the age that the host has set.

    As a request does at its start, but for CONN_MAX_AGE = 0: these threads are ours, and a new connection for
    every unit of work would cost more than the work. Theirs end with the thread, when it has been idle for a while.
    """
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block or connection.connection is None:
            continue
        if connection.settings_dict["CONN_MAX_AGE"] == 0:
            connection.close_at = None
        connection.close_if_unusable_or_obsolete()


_db_threads = Threads(DB_THREADS, "agent-db")
_tool_threads = Threads(TOOL_THREADS, "agent-tool")


async def in_db(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a unit of work on the agent's own bounded threads: one hop there and back."""
    return await _db_threads.run(partial(contextvars.copy_context().run, partial(call, *args, **kwargs)))


async def in_tool(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a host's sync code, which may be slow and may use the ORM, where it holds up no unit of work."""
    return await _tool_threads.run(partial(contextvars.copy_context().run, partial(call, *args, **kwargs)))


def close_threads() -> None:
    """End the threads of this process and close their connections; the next use makes new ones."""
    _db_threads.close()
    _tool_threads.close()


def insert_or_none(row: M) -> M | None:
    """Insert in a savepoint of its own; None when a unique key was taken: re-read and see who was first."""
    try:
        with transaction.atomic(using=row._state.db):
            row.save(force_insert=True)
    except IntegrityError:
        return None
    return row


def is_transient(error: BaseException) -> bool:
    """Whether the database refused this attempt alone: deadlock, lock waited for in vain, serialization failure."""
    if not isinstance(error, DatabaseError):
        return False
    cause = error.__cause__
    state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if state is not None:
        return state in _POSTGRES_TRANSIENT
    sqlite = getattr(cause, "sqlite_errorcode", None)
    if sqlite is not None:
        return sqlite & 0xFF in _SQLITE_TRANSIENT
    return bool(error.args) and error.args[0] in _MYSQL_TRANSIENT
