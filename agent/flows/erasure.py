"""Erase what somebody said (spec 01 §8): no row that is counted goes, so no total changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent.errors import Conflict, NotSupported
from agent.store import get_store
from agent.store.companions import personal_companions
from agent.store.staging import attachment_storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """How much was emptied or removed."""

    threads: int
    runs: int
    proposals: int
    files: int


def erase_actor(actor_ref: str) -> Erased:
    """Empty and remove in parts, each in a transaction of its own; what was cut off is done by doing it again.

    `Conflict` while something of theirs is open: its end would write their words once more.
    """
    store = get_store()
    if "erasure" not in store.capabilities:
        raise NotSupported("This store erases nobody.")
    _refuse_open_work(store.has_open_work(actor_ref))
    threads = 0
    for thread_id in _all(store.threads_of, actor_ref):
        _refuse_open_work(not store.erase_thread(thread_id))
        threads += 1
    runs = 0
    for run_id in _all(store.runs_of, actor_ref):
        store.erase_runs([run_id])
        runs += 1
    proposals = sum(store.erase_proposal(key) for key in _all(store.proposals_of, actor_ref))
    for companion in personal_companions(store):
        companion.erase_user(actor_ref)
    files = store.erase_belongings(actor_ref)
    for name in files:
        attachment_storage().delete(name)
    return Erased(threads=threads, runs=runs, proposals=proposals, files=len(files))


def _refuse_open_work(there_is: bool) -> None:
    if there_is:
        raise Conflict("A turn or an action of this person is not over: stop or decide it, then erase again.")


def _all(read: Callable[[str, str], list[str]], actor_ref: str) -> Iterator[str]:
    """Every id of them, read in parts."""
    after = ""
    while ids := read(actor_ref, after):
        yield from ids
        after = ids[-1]
