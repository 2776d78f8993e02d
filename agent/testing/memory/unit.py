"""Tables in memory whose changes can be taken back: rows are frozen values, and a log knows what was there before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="UnitOfWork")


class Index(Generic[K, V]):
    """The keys of a table's rows by what `key` says of them, in the order of insertion."""

    def __init__(self, key: Callable[[V], Hashable]) -> None:
        self._key = key
        self._keys: dict[Hashable, dict[K, None]] = {}

    def keys(self, value: Hashable) -> list[K]:
        """The keys of the rows with this value, oldest insertion first."""
        return list(self._keys.get(value, ()))

    def first(self, value: Hashable) -> K | None:
        """The key of a row with this value: of the only one, when it is unique."""
        return next(iter(self._keys.get(value, ())), None)

    def last(self, value: Hashable) -> K | None:
        """The key of the newest row with this value."""
        return next(reversed(self._keys.get(value, {})), None)

    def moved(self, key: K, before: V | None, after: V | None) -> None:
        """Follow a change of the table."""
        old = None if before is None else self._key(before)
        new = None if after is None else self._key(after)
        if before is not None and after is not None and old == new:
            return  # keeps its place in the order
        if before is not None:
            keys = self._keys[old]
            del keys[key]
            if not keys:
                del self._keys[old]
        if after is not None:
            self._keys.setdefault(new, {})[key] = None


class Table(Generic[K, V]):
    """Rows by key. Every change is written to the log of the unit of work first."""

    def __init__(self, log: list[tuple[Table[Any, Any], Any, Any]]) -> None:
        self._rows: dict[K, V] = {}
        self._log = log
        self._indexes: list[Index[K, V]] = []

    def index(self, key: Callable[[V], Hashable]) -> Index[K, V]:
        """A new index, kept up to date from here on."""
        index: Index[K, V] = Index(key)
        self._indexes.append(index)
        return index

    def get(self, key: K) -> V | None:
        return self._rows.get(key)

    def __getitem__(self, key: K) -> V:
        return self._rows[key]

    def __contains__(self, key: K) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[V]:
        return iter(self._rows.values())

    def items(self) -> Iterator[tuple[K, V]]:
        return iter(self._rows.items())

    def put(self, key: K, row: V) -> V:
        """Insert the row or replace the one with this key."""
        self._change(key, row)
        return row

    def drop(self, key: K) -> None:
        self._change(key, None)

    def _change(self, key: K, row: V | None) -> None:
        before = self._rows.get(key)
        self._log.append((self, key, before))
        self.restore(key, row)

    def restore(self, key: K, row: V | None) -> None:
        """Put a row back as it was, None: not there; only for the change above and for taking it back."""
        before = self._rows.get(key)
        if row is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = row
        for index in self._indexes:
            index.moved(key, before, row)


class UnitOfWork:
    """One lock, held for a whole unit of work: units are serial, and a reader sees none half done.

    One that is made `beside` another has its units in common with it.
    """

    waits = False

    def __init__(self, beside: UnitOfWork | None = None) -> None:
        self._lock = threading.RLock()
        self._log: list[tuple[Table[Any, Any], Any, Any]] = []
        self._calls: list[Callable[[], object]] = []
        self._marks: list[tuple[int, int]] = []
        self._unit = _Unit(self)
        if beside is not None:
            self._log, self._unit = beside._log, beside._unit

    def atomic(self) -> _Unit:
        """All or nothing; nests (an inner block that raises undoes only itself)."""
        return self._unit

    def on_commit(self, call: Callable[[], object]) -> None:
        """Call after the outermost commit (at once outside of a unit), never after a rollback."""
        with self._lock:
            if self._marks:
                self._calls.append(call)
                return
        call()

    def begin(self) -> None:
        self._lock.acquire()
        self._marks.append((len(self._log), len(self._calls)))

    def end(self, *, undo: bool) -> None:
        log_mark, call_mark = self._marks.pop()
        if undo:
            self._undo(log_mark)
            del self._calls[call_mark:]
        calls: list[Callable[[], object]] = []
        if not self._marks:
            self._log.clear()
            calls, self._calls = self._calls, []
        self._lock.release()
        for call in calls:
            call()

    def _undo(self, mark: int) -> None:
        while len(self._log) > mark:
            table, key, before = self._log.pop()
            table.restore(key, before)


class _Unit:
    """The context manager of every unit of work of a store; it has no state of its own."""

    def __init__(self, owner: UnitOfWork) -> None:
        self._owner = owner

    def __enter__(self) -> None:
        self._owner.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._owner.end(undo=kind is not None)


def unit(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Make a method a unit of work of its own, or a nested one of its caller's."""

    @wraps(method)
    def inside(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.atomic():
            return method(self, *args, **kwargs)

    return inside
