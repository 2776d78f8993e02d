"""IDEMPOTENCY_CONTRACT (spec 02 §5.9)."""

from __future__ import annotations

from datetime import timedelta

from agent.errors import Invalid
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import new_thread, say
from agent.testing.contracts.store import START, StoreCase, StoreSubject, case

IDEMPOTENCY_CONTRACT: list[StoreCase] = []
FINGERPRINT = "f" * 64


@case(IDEMPOTENCY_CONTRACT, "01 a key is claimed once per actor")
def _claim(subject: StoreSubject) -> None:
    store = subject.store
    same(store.claim_idempotency_key("ana", "k", FINGERPRINT), None, "new")
    known = store.claim_idempotency_key("ana", "k", "0" * 64)
    same(known and (known.fingerprint, known.outcome, known.run_id), (FINGERPRINT, None, None), "again")
    others = [store.claim_idempotency_key(actor, key, FINGERPRINT) for actor, key in (("bo", "k"), ("ana", "K"))]
    same(others, [None, None], "another actor, another key")


@case(IDEMPOTENCY_CONTRACT, "02 the outcome reads back")
def _outcome(subject: StoreSubject) -> None:
    store = subject.store
    store.claim_idempotency_key("ana", "k", FINGERPRINT)
    ids = {"thread_id": "t", "run_id": "r", "message_id": "m"}
    store.save_idempotency_outcome("ana", "k", thread_id="t", run_id="r", message_id="m", outcome={"z": 1, "a": [2]})
    wanted = {"fingerprint": FINGERPRINT, **ids, "outcome": {"z": 1, "a": [2]}}
    same(store.find_idempotency_key("ana", "k"), wanted, "find")
    same(store.claim_idempotency_key("ana", "k", FINGERPRINT), wanted, "claim")
    store.save_idempotency_outcome("bo", "k", thread_id=None, run_id=None, message_id=None, outcome={})
    same(store.find_idempotency_key("bo", "k"), None, "a key that nobody claimed")


@case(IDEMPOTENCY_CONTRACT, "03 two racing sends store one message", commits=True)
def _race(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)

    def send() -> bool:
        with store.atomic():
            if store.claim_idempotency_key("ana", "k", FINGERPRINT) is not None:
                return False
            message = say(store, thread_id)
            store.save_idempotency_outcome(
                "ana", "k", thread_id=thread_id, run_id=None, message_id=message.id, outcome={"ok": True}
            )
            return True

    same(sorted(subject.parallel([send] * 4)), [False, False, False, True], "sends")
    detail = store.get_thread(thread_id)
    same(detail and len(detail.messages), 1, "messages")


@case(IDEMPOTENCY_CONTRACT, "04 a claim of a unit that fails is no claim")
def _rollback(subject: StoreSubject) -> None:
    store = subject.store
    try:
        with store.atomic():
            store.claim_idempotency_key("ana", "k", FINGERPRINT)
            raise Invalid("the rest of the admission")
    except Invalid:
        pass
    same(store.find_idempotency_key("ana", "k"), None, "the key")


@case(IDEMPOTENCY_CONTRACT, "05 keys are purged by age")
def _purge(subject: StoreSubject) -> None:
    store = subject.store
    for key in ("old", "new"):
        store.claim_idempotency_key("ana", key, FINGERPRINT)
        subject.clock.advance(1)
    purged = [store.purge_idempotency_keys(START + timedelta(seconds=s)) for s in (0, 1, 1)]
    same(purged, [0, 1, 0], "purged")
    known = [store.find_idempotency_key("ana", key) is not None for key in ("old", "new")]
    same(known, [False, True], "what is left")


@case(IDEMPOTENCY_CONTRACT, "06 a key that does not fit is refused")
def _refused(subject: StoreSubject) -> None:
    store = subject.store
    for key in ("k" * 256, "a\x00"):
        same(store.find_idempotency_key("ana", key), None, "unknown")
        try:
            store.claim_idempotency_key("ana", key, FINGERPRINT)
        except Invalid:
            continue
        raise ContractMismatch(f"the key {key[:4]!r} was taken")
    expect(store.purge_idempotency_keys(START + timedelta(days=1)) == 0, "nothing is stored")
