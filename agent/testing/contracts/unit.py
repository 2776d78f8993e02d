"""UNIT_OF_WORK_CONTRACT (spec 02 §1): all or nothing, nested, and what is told only after the commit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agent.testing.contracts.base import expect, same
from agent.testing.contracts.rows import ANA, new_thread, say
from agent.testing.contracts.store import StoreCase, StoreSubject, case
from agent.testing.contracts.threads import contents

UNIT_OF_WORK_CONTRACT: list[StoreCase] = []


class _Undo(BaseException):
    """Takes a block back, as a signal does that no `except Exception` sees."""


def _undone(block: Callable[[], object]) -> None:
    try:
        block()
    except _Undo:
        return


@case(UNIT_OF_WORK_CONTRACT, "01 what a unit wrote is there after it, and all of it is gone after a failure")
def _all_or_nothing(subject: StoreSubject) -> None:
    store = subject.store
    with store.atomic():
        thread_id = new_thread(store)
        say(store, thread_id, "kept")

    def failing() -> None:
        with store.atomic():
            say(store, thread_id, "lost")
            store.set_title(thread_id, "lost")
            store.truncate_from(thread_id, "nobody")
            store.create_thread(actor=ANA)
            raise _Undo

    before = store.list_threads(ANA)
    _undone(failing)
    same((store.list_threads(ANA), contents(store, thread_id)), (before, ["kept"]), "after the failure")
    same(say(store, thread_id, "next").seq, 2, "the next seq")


@case(UNIT_OF_WORK_CONTRACT, "02 an inner block that fails undoes only itself")
def _nested(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)

    def inner() -> None:
        with store.atomic():
            say(store, thread_id, "inner")
            store.truncate_from(thread_id, first.id)
            raise _Undo

    with store.atomic():
        first = say(store, thread_id, "a")
        say(store, thread_id, "b")
        _undone(inner)
        same(contents(store, thread_id), ["a", "b"], "inside, in order")
        say(store, thread_id, "c")
    same(contents(store, thread_id), ["a", "b", "c"], "after it")


@case(
    UNIT_OF_WORK_CONTRACT,
    "03 callbacks run in order after the outermost commit, at once outside of a unit",
    commits=True,
)
def _on_commit(subject: StoreSubject) -> None:
    store = subject.store
    told: list[str] = []
    with store.atomic():
        store.on_commit(partial(told.append, "first"))
        with store.atomic():
            store.on_commit(partial(told.append, "second"))
        expect(told == [], "nothing is told inside")
    same(told, ["first", "second"], "after the commit")
    store.on_commit(partial(told.append, "third"))
    same(told, ["first", "second", "third"], "outside")


@case(UNIT_OF_WORK_CONTRACT, "04 callbacks of what was taken back are never run", commits=True)
def _never(subject: StoreSubject) -> None:
    store = subject.store
    told: list[str] = []

    def inner() -> None:
        with store.atomic():
            store.on_commit(partial(told.append, "inner"))
            raise _Undo

    def outer() -> None:
        with store.atomic():
            store.on_commit(partial(told.append, "outer"))
            raise _Undo

    with store.atomic():
        store.on_commit(partial(told.append, "kept"))
        _undone(inner)
    _undone(outer)
    same(told, ["kept"], "told")


@case(UNIT_OF_WORK_CONTRACT, "05 a callback sees the rows, and may begin a unit of its own", commits=True)
def _sees(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    seen: list[list[str] | None] = []

    def look() -> None:
        seen.append(contents(store, thread_id))
        with store.atomic():
            say(store, thread_id, "from the callback")

    with store.atomic():
        store.on_commit(look)
        say(store, thread_id, "a")
    same(seen, [["a"]], "seen")
    same(contents(store, thread_id), ["a", "from the callback"], "after it")


@case(UNIT_OF_WORK_CONTRACT, "06 nobody sees a unit half done", commits=True)
def _isolated(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)

    def write() -> list[str] | None:
        with store.atomic():
            say(store, thread_id, "a")
            say(store, thread_id, "b")
        return None

    def read() -> list[str] | None:
        return contents(store, thread_id)

    for seen in subject.parallel([write, read, read])[1:]:
        expect(seen in ([], ["a", "b"]), f"half of a unit: {seen}")
