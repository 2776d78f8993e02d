"""MEMORY_CONTRACT: facts that outlive a thread (spec 02 §4.10, §5.1)."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import timedelta

from agent.domain.memories import SaveMemory
from agent.errors import Invalid
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.store import START, StoreCase, StoreSubject, case

MEMORY_CONTRACT: list[StoreCase] = []
FACT = SaveMemory(
    scope="actor:ana",
    key="name",
    text="She is called Ana. 😀",
    origin_author="agent",
    origin_thread_id="t",
    origin_run_id="r",
    origin_actor_ref="ana",
    pinned=True,
)


@case(MEMORY_CONTRACT, "01 every field of a memory reads back equal")
def _fact(subject: StoreSubject) -> None:
    store = subject.store
    made = store.upsert_memory(FACT)
    same(asdict(made), {"id": made.id, **asdict(FACT), "created_at": START, "updated_at": START}, "what is answered")
    same(store.get_memory(made.id), made, "get_memory")
    bare = SaveMemory(scope="global", key="k", text="a\x00b", origin_author="human")
    plain = store.upsert_memory(bare)
    same((plain.text, plain.origin_run_id, plain.pinned), ("a\ufffdb", None, False), "a bare one")


@case(MEMORY_CONTRACT, "02 a rewrite of a memory keeps its pinned flag, id and creation time")
def _rewrite(subject: StoreSubject) -> None:
    store = subject.store
    made = store.upsert_memory(FACT)
    subject.clock.advance(1)
    changed = replace(FACT, text="Ana Maria", origin_author="human", origin_run_id=None, pinned=False)
    written = store.upsert_memory(changed)
    kept = replace(
        made, text="Ana Maria", origin_author="human", origin_run_id=None, updated_at=START + timedelta(seconds=1)
    )
    same(written, kept, "the rewrite")
    same(store.list_memories(["actor:ana"]), [kept], "the only one")


@case(MEMORY_CONTRACT, "03 a list holds the asked scopes alone: pinned first, then what was changed last")
def _listed(subject: StoreSubject) -> None:
    store = subject.store
    made = {}
    for key, scope, pinned in (
        ("a", "actor:ana", False),
        ("b", "tenant:acme", True),
        ("c", "actor:ana", False),
        ("d", "actor:Ana", True),
        ("e", "actor:ana ", True),
    ):
        made[key] = store.upsert_memory(replace(FACT, key=key, scope=scope, pinned=pinned)).id
        subject.clock.advance(1)
    same([one.id for one in store.list_memories(["actor:ana", "tenant:acme"])], [made[k] for k in "bca"], "the order")
    same([store.list_memories([]), store.list_memories(["global"])], [[], []], "nothing asked, nothing there")


@case(MEMORY_CONTRACT, "04 keys of two scopes, and keys that differ in case, are apart")
def _apart(subject: StoreSubject) -> None:
    ways = (("actor:ana", "k"), ("actor:bo", "k"), ("actor:ana", "K"))
    ids = {subject.store.upsert_memory(replace(FACT, scope=scope, key=key)).id for scope, key in ways}
    same(len(ids), 3, "three facts")


@case(MEMORY_CONTRACT, "05 a fact is deleted once; an unknown one is no fact")
def _deleted(subject: StoreSubject) -> None:
    store = subject.store
    made = store.upsert_memory(FACT)
    same([store.delete_memory(made.id), store.delete_memory(made.id)], [True, False], "delete_memory")
    same([store.get_memory(made.id), store.get_memory("nobody")], [None, None], "get_memory")
    expect(store.upsert_memory(FACT).id != made.id, "a new fact has an id of its own")


@case(MEMORY_CONTRACT, "06 a scope or a key that does not fit is refused and nothing is kept")
def _refused(subject: StoreSubject) -> None:
    for wrong in (
        replace(FACT, scope="s" * 301),
        replace(FACT, key="k" * 129),
        replace(FACT, key="k\x00"),
        replace(FACT, origin_actor_ref="\ud800"),
    ):
        try:
            subject.store.upsert_memory(wrong)
        except Invalid:
            continue
        raise ContractMismatch(f"{wrong!r:.80} was taken")
    same(subject.store.list_memories(["actor:ana"]), [], "nothing is kept")


@case(MEMORY_CONTRACT, "07 eight racing writes of one key keep one fact", commits=True)
def _race(subject: StoreSubject) -> None:
    store = subject.store
    made = subject.parallel([lambda: store.upsert_memory(FACT).id] * 8)
    same(len(set(made)), 1, "the ids that were answered")
    same([one.id for one in store.list_memories(["actor:ana"])], [made[0]], "what is kept")
