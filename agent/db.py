"""The one bridge from async code into the database."""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import DatabaseError, connections

P = ParamSpec("P")
T = TypeVar("T")

DB_THREADS = 8  # how many units of work a process may have open at once; each thread keeps a connection of its own
REQUEST_THREADS = 16  # what sockets ask for; over HTTP each request has a thread of its server's
TOOL_THREADS = 32  # bodies of sync tools, which may be slow: they never hold up the units of work
UNWATCHED_SECONDS = 1  # a connection that nobody used for so long is asked whether it is still there
PATIENT_EVERY = 4  # where both wait, one in so many is of those that can
IDLE_SECONDS = 60  # a thread without work ends after that, and its connections with it

_POSTGRES_TRANSIENT = frozenset({"40001", "40P01", "55P03"})  # serialization, deadlock, lock not available
_MYSQL_TRANSIENT = frozenset({1020, 1205, 1213, 3572})  # changed since read (MariaDB), lock wait, deadlock, NOWAIT
_SQLITE_TRANSIENT = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


Work = Callable[[], Callable[[], None]]  # answers what delivers its outcome


class _Crew:
    """The threads of a pool: who is there, who is idle, what waits, and each one's own inbox."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.threads: list[threading.Thread] = []
        self.idle: list[threading.Thread] = []
        self.backlog: deque[Work] = deque()
        self.patient: deque[Work] = deque()  # nobody looks at the clock for these
        self.served = 0  # of the two, while both waited
        self.inbox: dict[threading.Thread, queue.SimpleQueue[Work | None]] = {}

    def waiting(self) -> Work | None:
        """What is to be done next: who can wait does, but not for ever."""
        if self.backlog and self.patient:
            self.served += 1
            return self.patient.popleft() if self.served % PATIENT_EVERY == 0 else self.backlog.popleft()
        queued = self.backlog or self.patient
        return queued.popleft() if queued else None


class Threads:
    """A bounded pool of daemon threads with Django's connection hygiene; the last to become idle is the next to work.

    Not a `ThreadPoolExecutor`: that one refuses work from the moment the main thread ends, which is when a process
    still has to hand its runs over, and it wakes the thread whose connection and caches are the coldest.
    """

    def __init__(self, size: int, name: str) -> None:
        self._size, self._name = size, name
        self._lock = threading.Lock()
        self._crew = _Crew()

    async def run(self, call: Callable[[], T], *, patient: bool = False) -> T:
        """The call's answer, from one of the threads; an awaiter that is cancelled leaves the work to end by itself.

        What is `patient` lets the others go first when all threads are busy.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._submit(partial(_answered, call, loop, future), patient=patient)
        return await future

    def close(self) -> None:
        """End the threads and their connections when what they have in hand is done."""
        with self._lock:
            crew, self._crew = self._crew, _Crew()
        for thread in crew.threads:
            crew.inbox[thread].put(None)
        for thread in crew.threads:
            thread.join(timeout=10)

    def _submit(self, work: Work, *, patient: bool) -> None:
        with self._lock:
            if self._crew.pid != os.getpid():
                self._crew = _Crew()  # a fork has the list but not the threads
            crew = self._crew
            if crew.idle:
                crew.inbox[crew.idle.pop()].put(work)
            elif len(crew.threads) < self._size:
                self._hire(crew, work)
            else:
                (crew.patient if patient else crew.backlog).append(work)

    def _hire(self, crew: _Crew, work: Work) -> None:
        name = f"{self._name}-{len(crew.threads)}"
        thread = threading.Thread(target=self._serve, args=(crew,), name=name, daemon=True)
        crew.threads.append(thread)
        crew.inbox[thread] = queue.SimpleQueue()
        crew.inbox[thread].put(work)
        thread.start()

    def _serve(self, crew: _Crew) -> None:
        me = threading.current_thread()
        try:
            work = crew.inbox[me].get()
            while work is not None:
                deliver = work()
                del work  # else it keeps what it worked on alive until the next one
                work = self._next(crew, me, deliver)
                del deliver
        finally:
            connections.close_all()

    def _next(self, crew: _Crew, me: threading.Thread, deliver: Callable[[], None]) -> Work | None:
        """Deliver, idle already: whoever gets the answer finds this thread ready for what he asks next."""
        with self._lock:
            work = crew.waiting()
            if work is None:
                crew.idle.append(me)
        deliver()
        return work or self._wait(crew, me)

    def _wait(self, crew: _Crew, me: threading.Thread) -> Work | None:
        try:
            return crew.inbox[me].get(timeout=IDLE_SECONDS)
        except queue.Empty:
            with self._lock:
                if me in crew.idle:
                    crew.idle.remove(me)
                    crew.threads.remove(me)
                    return None
            return crew.inbox[me].get()  # it was given work at the last moment


def _answered(call: Callable[[], T], loop: asyncio.AbstractEventLoop, future: asyncio.Future[T]) -> Callable[[], None]:
    """Do the work; what is handed back delivers its answer."""
    close_unusable()
    try:
        answer: Callable[[], None] = partial(_set, future.set_result, future, call())
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):  # would end the loop of whoever waits, and all it drives
            error = RuntimeError(f"{type(error).__name__}: {error}")
        answer = partial(_set, future.set_exception, future, error)
    return partial(_deliver, loop, answer)


def _deliver(loop: asyncio.AbstractEventLoop, answer: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(answer)
    except RuntimeError:  # the loop has ended, and whoever waited with it
        return


def _set(setter: Callable[[T], object], future: asyncio.Future[Any], outcome: T) -> None:
    if not future.done():
        setter(outcome)


def close_unusable(*, unwatched_seconds: float = UNWATCHED_SECONDS) -> None:
    """Drop connections that are broken, were cut while nobody used them, or are past the age that the host has set.

    As a request does at its start, but for CONN_MAX_AGE = 0: these threads are ours, and a new connection for
    every unit of work would cost more than the work. Theirs end with the thread, when it has been idle for a while.
    """
    now = time.monotonic()
    used = vars(_used)
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block or connection.connection is None:
            continue
        if now - used.get(connection.alias, now) > unwatched_seconds and not connection.is_usable():
            connection.close()
            continue
        used[connection.alias] = now
        if connection.settings_dict["CONN_MAX_AGE"] == 0:
            connection.close_at = None
        connection.close_if_unusable_or_obsolete()


def close_connections() -> None:
    """Give back the connections of this thread, which has nothing more to do for a while; not within a transaction."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


_used = threading.local()  # when this thread last looked at each of its connections


_db_threads = Threads(DB_THREADS, "agent-db")
_request_threads = Threads(REQUEST_THREADS, "agent-request")
_tool_threads = Threads(TOOL_THREADS, "agent-tool")


async def in_db(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a unit of work on the agent's own bounded threads: one hop there and back."""
    return await _db_threads.run(partial(contextvars.copy_context().run, partial(call, *args, **kwargs)))


async def in_db_later(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `in_db`, but when all threads are busy the work of others goes first."""
    work = partial(contextvars.copy_context().run, partial(call, *args, **kwargs))
    return await _db_threads.run(work, patient=True)


async def in_request(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run what a socket asks for, the host's way of knowing its users included, on threads of its own."""
    return await _request_threads.run(partial(contextvars.copy_context().run, partial(call, *args, **kwargs)))


async def in_tool(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a host's sync code, which may be slow and may use the ORM, where it holds up no unit of work."""
    return await _tool_threads.run(partial(contextvars.copy_context().run, partial(call, *args, **kwargs)))


def close_threads() -> None:
    """End the threads of this process and close their connections; the next use makes new ones."""
    for threads in (_db_threads, _request_threads, _tool_threads):
        threads.close()


_sqlite_writer = threading.RLock()
os.register_at_fork(after_in_child=_sqlite_writer._at_fork_reinit)  # type: ignore[attr-defined]


def one_writer(using: str) -> AbstractContextManager[object]:
    """On SQLite, the turn of one writing thread of this process at a time; elsewhere nothing.

    SQLite has one writer anyway, and who collides with it sleeps for whole milliseconds before he looks again. A lock
    hands over at once. Within a transaction it is not asked for: that one is the writer already.
    """
    connection = connections[using]
    return _sqlite_writer if connection.vendor == "sqlite" and not connection.in_atomic_block else nullcontext()


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
