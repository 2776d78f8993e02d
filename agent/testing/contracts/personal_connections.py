"""PERSONAL_AGENT_CONNECTION_STORE_CONTRACT (spec 12 §6, experimental)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from hashlib import sha256

from agent.domain.personal import NewConnection
from agent.errors import Conflict, Invalid
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.personal_subject import ConnectionCase, Connections
from agent.testing.contracts.store import START

PERSONAL_AGENT_CONNECTION_STORE_CONTRACT: list[ConnectionCase] = []

TOKEN = "a token that nobody stores"  # noqa: S105 - a word of the tests
HASH = sha256(TOKEN.encode()).hexdigest()
OTHER = sha256(b"another").hexdigest()
BARE = NewConnection(client_id="assistant", user_id="ana", scopes=[])
FULL = NewConnection(
    client_id="assistant",
    user_id="ana",
    scopes=["ask", "read"],
    account_ref="account 7",
    status="active",
    token_hash=HASH,
    token_expires_at=START + timedelta(hours=1),
    metadata={"z": 1, "a": ["\x00"]},
)

Proof = Callable[[Connections], None]


def _case(name: str, *, commits: bool = False) -> Callable[[Proof], Proof]:
    def add(proof: Proof) -> Proof:
        PERSONAL_AGENT_CONNECTION_STORE_CONTRACT.append(ConnectionCase(name, proof, commits))
        return proof

    return add


@_case("01 every field reads back equal; with none, absent")
def _round_trip(subject: Connections) -> None:
    store = subject.store
    for given in (FULL, replace(BARE, user_id="bo")):
        made = store.connect(given)
        wanted = {"id": made.id, **asdict(given), "created_at": START, "updated_at": START, "last_used_at": None}
        same(asdict(made), wanted, "what is answered")
        same(store.get(given.client_id, given.user_id), made, "get")
    subject.clock.advance(1)
    made = store.connect(FULL)
    same([store.touch(made.id), store.touch("nobody")], [True, False], "touch")
    same(store.get("assistant", "ana"), replace(made, last_used_at=subject.clock.now), "after a use")
    same([store.get("assistant", "cy"), store.by_token_hash(OTHER)], [None, None], "unknown")


@_case("02 one row a client and person")
def _one(subject: Connections) -> None:
    store = subject.store
    first = store.connect(FULL)
    subject.clock.advance(1)
    again = store.connect(replace(BARE, scopes=["ask"]))
    same((again.id, again.created_at, again.updated_at), (first.id, START, subject.clock.now), "the same row")
    same((again.scopes, again.account_ref, again.metadata), (["ask"], None, None), "what is agreed now")
    others = [store.connect(replace(BARE, client_id=one)).id for one in ("Assistant", "other")]
    same(len({first.id, *others}), 3, "another client")


@_case("02b of eight at once one row is left", commits=True)
def _at_once(subject: Connections) -> None:
    made = subject.parallel([lambda: subject.store.connect(FULL).id] * 8)
    same(len(set(made)), 1, "the ids")
    same([one.id for one in subject.store.list_for_user("ana")], made[:1], "the rows")


@_case("03 a token's hash finds its connection, and none after revocation or once it has expired")
def _token(subject: Connections) -> None:
    store = subject.store
    made = store.connect(FULL)
    same(store.by_token_hash(HASH), made, "its connection")
    subject.clock.advance(3600)
    same(store.by_token_hash(HASH), None, "once it has expired")
    subject.clock.advance(-3600)
    same([store.revoke("assistant", "ana"), store.revoke("assistant", "ana")], [True, False], "revoked once")
    same((store.by_token_hash(HASH), store.revoke("assistant", "cy")), (None, False), "after revocation")
    row = store.get("assistant", "ana")
    same(row and (row.status, row.token_hash), ("revoked", None), "the row stays, its token does not")


@_case("03b a connection that waits for its person authenticates nobody; a revoked one never comes back by a status")
def _states(subject: Connections) -> None:
    store = subject.store
    made = store.connect(replace(FULL, status="pending"))
    same(store.by_token_hash(HASH), None, "pending")
    same([store.set_status(made.id, word) for word in ("pending", "unknown")], [False, False], "no such moves")
    same([store.set_status(made.id, "active") for _ in "ab"], [True, False], "active, once")
    found = store.by_token_hash(HASH)
    same(found and found.id, made.id, "active")
    words = ("pending", "revoked", "active", "revoked")
    same([store.set_status(made.id, word) for word in words], [False, True, False, False], "revoked for good")
    same((store.by_token_hash(HASH), store.set_status("nobody", "revoked")), (None, False), "nobody")


@_case("04 connecting again replaces the token and takes a revoked connection up")
def _again(subject: Connections) -> None:
    store = subject.store
    made = store.connect(FULL)
    store.connect(replace(FULL, token_hash=OTHER))
    same(store.by_token_hash(HASH), None, "the former token")
    store.revoke("assistant", "ana")
    back = store.connect(replace(FULL, token_hash=HASH))
    same((back.id, back.status), (made.id, "active"), "taken up")
    same((store.by_token_hash(HASH), store.by_token_hash(OTHER)), (back, None), "its token")


@_case("04b a token of another connection is a conflict and changes nothing")
def _taken(subject: Connections) -> None:
    store = subject.store
    store.connect(FULL)
    mine = store.connect(replace(BARE, user_id="bo"))
    for user in ("bo", "cy"):
        try:
            store.connect(replace(FULL, user_id=user))
        except Conflict:
            continue
        raise ContractMismatch("two connections share a token")
    same((store.get("assistant", "bo"), store.get("assistant", "cy")), (mine, None), "what is kept")


@_case("05 only the hash is stored, and what does not fit is refused")
def _hashed(subject: Connections) -> None:
    store = subject.store
    store.connect(FULL)
    expect(TOKEN not in repr(store.list_for_user("ana")), "the token is nowhere")
    same(store.by_token_hash(TOKEN), None, "the token itself finds nothing")
    for wrong in (
        replace(BARE, token_hash="h" * 65),
        replace(BARE, client_id="c" * 256),
        replace(BARE, user_id="\x00"),
    ):
        try:
            store.connect(wrong)
        except Invalid:
            continue
        raise ContractMismatch(f"{wrong!r:.80} was taken")


@_case("06 lists are a person's own, and so is an erasure")
def _lists(subject: Connections) -> None:
    store = subject.store
    made = [store.connect(replace(BARE, client_id=one)).id for one in "ab"]
    other = store.connect(replace(BARE, user_id="bo")).id
    same([one.id for one in store.list_for_user("ana")], sorted(made), "ana's")
    same(store.list_for_user("cy"), [], "nobody's")
    same([store.erase_user("ana"), store.erase_user("ana")], [2, 0], "erased")
    same([[one.id for one in store.list_for_user(user)] for user in ("ana", "bo")], [[], [other]], "what is left")
