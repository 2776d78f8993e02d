"""PERSONAL_AGENT_STORE_CONTRACT about messages that are delivered (spec 12 §6, experimental)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent.testing.contracts.base import same
from agent.testing.contracts.personal_agent import FINGERPRINT, case
from agent.testing.contracts.personal_subject import Personal


@case("10 a message is new once, then in progress, then done with its response")
def _message(subject: Personal) -> None:
    store = subject.store

    def claim(owner: str = "ana", message_id: str = "m", fingerprint: str = FINGERPRINT) -> str:
        return store.claim_message(owner, message_id, fingerprint).state

    same([claim(), claim(), claim(fingerprint="0" * 64)], ["new", "in_progress", "mismatch"], "claims")
    same([claim("bo"), claim(message_id="M")], ["new", "new"], "another owner, another message")
    same([store.release_message("ana", "m"), claim()], [True, "new"], "after a release")
    response = {"status": 202, "body": {"z": 1, "a": [None]}}
    same([store.complete_message("ana", "m", response) for _ in "ab"], [True, False], "its answer, once")
    known = store.claim_message("ana", "m", FINGERPRINT)
    same((known.state, known.response), ("done", response), "done")
    same([claim(fingerprint="0" * 64), store.release_message("ana", "m")], ["mismatch", False], "done is done")
    same([store.complete_message("cy", "m", response), store.release_message("cy", "m")], [False, False], "unknown")


@case("10b of eight racing claims one is new", commits=True)
def _message_at_once(subject: Personal) -> None:
    claims: Sequence[Callable[[], str]] = [lambda: subject.store.claim_message("ana", "m", FINGERPRINT).state] * 8
    same(sorted(subject.parallel(claims)), [*["in_progress"] * 7, "new"], "claims")
