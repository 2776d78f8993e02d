"""CONFIRM_TOKEN_CONTRACT (spec 02 §5.9)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from agent.domain.clock import epoch_ms
from agent.domain.confirm_tokens import Claim, hash_of
from agent.errors import Invalid
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch, same
from agent.testing.contracts.store import StoreCase, StoreSubject, case

CONFIRM_TOKEN_CONTRACT: list[StoreCase] = []


def use(store: AgentStore, text: str = "token", expires_at_ms: int = 10_000) -> bool:
    return store.claim_token(hash_of(text), "ana", "export", expires_at_ms)


@case(CONFIRM_TOKEN_CONTRACT, "01 only the first claim wins")
def _first(subject: StoreSubject) -> None:
    same([use(subject.store), use(subject.store), use(subject.store, "other")], [True, False, True], "claims")


@case(CONFIRM_TOKEN_CONTRACT, "02 of eight claims at once one wins", commits=True)
def _at_once(subject: StoreSubject) -> None:
    same(sorted(subject.parallel([partial(use, subject.store)] * 8)), [*[False] * 7, True], "claims")


@case(CONFIRM_TOKEN_CONTRACT, "03 a release lets it be used again")
def _released(subject: StoreSubject) -> None:
    store = subject.store
    use(store)
    store.release_token(hash_of("token"))
    store.release_token(hash_of("nobody's"))
    same([use(store), use(store)], [True, False], "claims")


@case(CONFIRM_TOKEN_CONTRACT, "04 a purge removes the expired ones, and says how many")
def _purge(subject: StoreSubject) -> None:
    store = subject.store
    for text, expires_at_ms in (("a", 1000), ("b", 2000), ("c", 2001)):
        use(store, text, expires_at_ms)
    same([store.purge_expired_tokens(2000), store.purge_expired_tokens(2000)], [2, 0], "purges")
    same([use(store, "a"), use(store, "c")], [True, False], "what is kept")


@case(CONFIRM_TOKEN_CONTRACT, "05 a signed token works once, and only for its call")
def _signed(subject: StoreSubject) -> None:
    store, now_ms = subject.store, epoch_ms(subject.clock.now)
    claim = Claim(tool="export", actor_ref="ana", tenant_ref=None, arguments={"year": 2026})
    token = claim.token("secret", now_ms + 1000)
    other = replace(claim, arguments={"year": 2025})
    same([claim.expiry("secret", token, now_ms), other.expiry("secret", token, now_ms)], [now_ms + 1000, None], "holds")
    same([use(store, token, now_ms + 1000), use(store, token, now_ms + 1000)], [True, False], "claims")
    store.release_token(token)  # it is known by its hash alone
    same(use(store, token, now_ms + 1000), False, "after a release of the token itself")


@case(CONFIRM_TOKEN_CONTRACT, "06 a claim of a unit that fails is no claim")
def _rollback(subject: StoreSubject) -> None:
    store = subject.store
    try:
        with store.atomic():
            use(store)
            raise KeyError
    except KeyError:
        same(use(store), True, "claimed anew")


@case(CONFIRM_TOKEN_CONTRACT, "07 what no column can hold is rejected")
def _exact(subject: StoreSubject) -> None:
    for given in (("h" * 65, "ana", "t"), ("h", "a" * 256, "t"), ("h", "a\x00", "t")):
        try:
            subject.store.claim_token(*given, 1)
        except Invalid:
            continue
        raise ContractMismatch(f"{given} was accepted")
