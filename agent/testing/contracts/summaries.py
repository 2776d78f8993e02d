"""SUMMARY_CONTRACT (spec 02 §5.9): what stands for the messages that a history policy has dropped."""

from __future__ import annotations

from functools import partial

from agent.domain.commands import SaveSummary
from agent.domain.snapshots import StoredSummary
from agent.errors import Invalid
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.round_trip import ROUND_TRIP_CONTRACT
from agent.testing.contracts.rows import BO, answer, new_thread, say
from agent.testing.contracts.store import START, StoreCase, StoreSubject, case

SUMMARY_CONTRACT: list[StoreCase] = []


def save(store: AgentStore, thread_id: str, up_to_seq: int, text: str = "so far", policy: str = "policy") -> bool:
    return store.save_thread_summary(
        SaveSummary(thread_id=thread_id, policy_fingerprint=policy, up_to_seq=up_to_seq, text=text, model_id="m")
    )


def told(store: AgentStore, thread_id: str, policy: str = "policy") -> tuple[int, str] | None:
    stored = store.thread_summary(thread_id, policy)
    return None if stored is None else (stored.up_to_seq, stored.text)


def talk(store: AgentStore, thread_id: str, count: int = 6) -> list[str]:
    """Questions and answers, numbered from 1."""
    return [(say if place % 2 == 0 else answer)(store, thread_id, f"{place}").id for place in range(count)]


@case(ROUND_TRIP_CONTRACT, "03g every field of a summary reads back equal", needs=("summaries",))
def _fields(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    thread_id = new_thread(store)
    made = SaveSummary(
        thread_id=thread_id, policy_fingerprint="f" * 64, up_to_seq=7, text="a\x00b \u202e😀", model_id="m" * 128
    )
    expect(store.save_thread_summary(made), "it is kept")
    first = store.thread_summary(thread_id, "f" * 64)
    if first is None:
        raise ContractMismatch("nothing reads back")
    wanted = StoredSummary(
        id=first.id,
        thread_id=thread_id,
        up_to_seq=7,
        text="a\ufffdb \u202e😀",
        policy_fingerprint="f" * 64,
        model_id="m" * 128,
        created_at=START,
        updated_at=START,
    )
    same(first, wanted, "the summary")
    clock.advance(5)
    save(store, thread_id, 8, "more", policy="f" * 64)
    second = store.thread_summary(thread_id, "f" * 64)
    seen = second and (second.id, second.text, second.model_id, second.created_at, second.updated_at)
    same(seen, (first.id, "more", "m", START, clock.now), "its successor")


@case(SUMMARY_CONTRACT, "01 only a higher watermark replaces")
def _higher(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    same(told(store, thread_id), None, "before")
    kept = [save(store, thread_id, seq, f"to {seq}") for seq in (4, 4, 3, 6, 5)]
    same(kept, [True, False, False, True, False], "which were kept")
    same(told(store, thread_id), (6, "to 6"), "the highest")


@case(SUMMARY_CONTRACT, "01b of summaries that come at once the highest stays", commits=True)
def _race(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    kept = subject.parallel([partial(save, store, thread_id, seq) for seq in (2, 8, 4, 6)])
    expect(kept[1], "nothing is higher than the highest")
    same(told(store, thread_id), (8, "so far"), "the highest")


@case(SUMMARY_CONTRACT, "02 a truncation discards what it reaches, and nothing else")
def _truncation(subject: StoreSubject) -> None:
    store = subject.store
    thread_id, other = new_thread(store), new_thread(store)
    messages = talk(store, thread_id)
    for policy, seq in (("low", 3), ("at", 4), ("high", 5)):
        save(store, thread_id, seq, policy=policy)
    save(store, other, 5)
    store.truncate_from(thread_id, "nobody")
    same(
        [told(store, thread_id, policy) is None for policy in ("low", "at", "high")], [False] * 3, "an unknown message"
    )
    store.truncate_from(thread_id, messages[3])
    same(told(store, thread_id, "low"), (3, "so far"), "a summary below the cut")
    same([told(store, thread_id, policy) for policy in ("at", "high")], [None, None], "summaries that the cut reaches")
    same(told(store, other), (5, "so far"), "another thread")
    expect(save(store, thread_id, 3, "again", policy="at"), "a lower one may come after a truncation")


@case(SUMMARY_CONTRACT, "02b a regenerated answer discards what covers it")
def _regenerate(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    talk(store, thread_id)
    save(store, thread_id, 5, policy="question")
    save(store, thread_id, 6, policy="answer")
    store.truncate_after_last_user(thread_id)
    same([told(store, thread_id, policy) for policy in ("question", "answer")], [(5, "so far"), None], "what is left")


@case(SUMMARY_CONTRACT, "03 fingerprints are apart")
def _fingerprints(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    for policy, seq in (("p", 5), ("P", 2), ("p ", 3)):
        expect(save(store, thread_id, seq, policy, policy=policy), "the first of its policy")
    same([told(store, thread_id, p) for p in ("p", "P", "p ", "q")], [(5, "p"), (2, "P"), (3, "p "), None], "summaries")
    for odd in ("x" * 65, "a\x00", "\ud800"):
        same(store.thread_summary(thread_id, odd), None, "what cannot be a fingerprint")
        try:
            save(store, thread_id, 1, policy=odd)
        except Invalid:
            continue
        raise ContractMismatch(f"fingerprint {odd[:3]!r} was taken")


@case(SUMMARY_CONTRACT, "04 an unknown and a deleted thread have none, and a fork starts without one")
def _threads(subject: StoreSubject) -> None:
    store = subject.store
    same((save(store, "nobody", 1), told(store, "nobody")), (False, None), "an unknown thread")
    thread_id = new_thread(store, BO)
    message = say(store, thread_id)
    save(store, thread_id, 1)
    fork = store.fork_thread(thread_id, message.id)
    same(told(store, fork.id), None, "a fork")
    store.soft_delete_thread(thread_id)
    same((save(store, thread_id, 2), told(store, thread_id)), (False, None), "a deleted thread")
    expect(store.purge_thread(thread_id), "a thread with a summary can be deleted for good")


@case(SUMMARY_CONTRACT, "05 a unit that is taken back leaves the summary that was there")
def _undone(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    save(store, thread_id, 2, "kept")
    try:
        with store.atomic():
            save(store, thread_id, 4, "lost")
            save(store, thread_id, 4, "lost", policy="other")
            raise LookupError
    except LookupError:
        pass
    same((told(store, thread_id), told(store, thread_id, "other")), ((2, "kept"), None), "after the rollback")
