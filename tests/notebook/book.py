"""The dictionaries of a notebook, and its unit of work: one writer at a time, and a copy to go back to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from agent.domain.canonical import compact_json
from agent.domain.ids import new_id
from agent.domain.ledger import ModelPrice, UsageEntry
from agent.domain.snapshots import Message, ToolCall
from agent.domain.text import clean_text, is_exact
from agent.errors import Invalid

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound="str | None")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRow:
    id: str
    external_id: str | None
    actor_ref: str
    tenant_ref: str | None
    title: str
    transient: bool
    active_run_id: str | None
    default_agent: str | None
    persona: str | None
    last_seq: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None


class Book:
    """Rows are frozen, so that a copy of each dictionary is all that a rollback needs."""

    waits = False

    def __init__(self) -> None:
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.new_id: Callable[[], str] = new_id
        self.threads: dict[str, ThreadRow] = {}
        self.messages: dict[str, Message] = {}
        self.calls: dict[str, ToolCall] = {}
        self.usage: dict[int, UsageEntry] = {}
        self.prices: dict[str, ModelPrice] = {}
        self._lock = threading.RLock()
        self._depth = 0
        self._told: list[Callable[[], object]] = []

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """All or nothing; nests (an inner block that raises undoes only itself)."""
        with self._lock:
            before, told = self._copies(), len(self._told)
            self._depth += 1
            try:
                yield
            except BaseException:
                for table, rows in before:
                    table.clear()
                    table.update(rows)
                del self._told[told:]
                raise
            finally:
                self._depth -= 1
                told_now, self._told = ([], self._told) if self._depth else (self._told, [])
        for call in told_now:
            call()

    def on_commit(self, call: Callable[[], object]) -> None:
        """Call after the outermost commit (at once outside of a unit), never after a rollback."""
        with self._lock:
            if self._depth:
                self._told.append(call)
                return
        call()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else reads or writes meanwhile."""
        with self._lock:
            yield

    def _copies(self) -> list[tuple[dict[Any, Any], dict[Any, Any]]]:
        tables: list[dict[Any, Any]] = [self.threads, self.messages, self.calls, self.usage, self.prices]
        return [(table, dict(table)) for table in tables]


B = TypeVar("B", bound=Book)


def alone(method: Callable[Concatenate[B, P], R]) -> Callable[Concatenate[B, P], R]:
    """A method that sees no unit of work half done."""

    @wraps(method)
    def inside(self: B, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.alone():
            return method(self, *args, **kwargs)

    return inside


def name(value: T, length: int = 255) -> T:
    """An id, a reference or a name as it is, or refused."""
    if value is not None and (len(value) > length or not is_exact(value)):
        raise Invalid(f"at most {length} characters, without NUL and lone surrogates")
    return value


def ident(value: T) -> T:
    """An id of a row."""
    return name(value, 64)


def text(value: str | None) -> str | None:
    """Text of any length, NULs and lone surrogates marked."""
    return None if value is None else clean_text(value)


def own(value: Any) -> Any:
    """The same JSON with nothing shared."""
    return None if value is None else json.loads(compact_json(value))
