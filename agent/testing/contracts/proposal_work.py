"""PROPOSAL_WORKER_CONTRACT and PROPOSAL_REPLACEMENT_CONTRACT (spec 02 §5.8)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from agent.domain.proposal_json import snapshot
from agent.domain.proposals import Proposal
from agent.store.base import AgentStore
from agent.testing.contracts.base import expect, same
from agent.testing.contracts.proposal_rows import (
    LEASE_MS,
    MINE,
    NOW_MS,
    approved,
    asked,
    claimed,
    decide,
    failed,
    fence,
    made,
    needed,
    refused,
    settle,
    settled,
    stored,
)
from agent.testing.contracts.store import StoreCase, StoreSubject, case

PROPOSAL_WORKER_CONTRACT: list[StoreCase] = []
PROPOSAL_REPLACEMENT_CONTRACT: list[StoreCase] = []
THEIRS = replace(MINE, tenant_ref=None, actor_ref="bo")


def take(store: AgentStore, worker_id: str = "w") -> Proposal | None:
    return store.claim_next_proposal(worker_id, LEASE_MS, store.clock())


@case(PROPOSAL_WORKER_CONTRACT, "01 three workers share two proposals of two tenants", commits=True)
def _share(subject: StoreSubject) -> None:
    store = subject.store
    approved(store, "mine")
    approved(store, "theirs", THEIRS)
    taken = [one for one in subject.parallel([partial(take, store, f"w{place}") for place in range(3)]) if one]
    same(sorted(one.id for one in taken), ["mine", "theirs"], "claims")
    same({one.execution.generation for one in taken if one.execution}, {1}, "generation")
    same({one.id: one.scope for one in taken}, {"mine": MINE, "theirs": THEIRS}, "authoritative scopes")
    same([one.id for one in store.list_proposals(MINE)], ["mine"], "scoped reads")


@case(PROPOSAL_WORKER_CONTRACT, "02 a live lease excludes peers; a lapsed one is taken over")
def _take_over(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    approved(store)
    first = take(store)
    clock.advance(LEASE_MS / 1000 - 0.001)
    same(take(store), None, "a live lease")
    clock.advance(0.001)
    second = take(store)
    expect(first is not None and second is not None, "taken over")
    assert first is not None
    assert second is not None
    same(fence(second)[1], 2, "the next generation")
    expect(fence(second)[0] != fence(first)[0], "another token")
    same(second.asked.idempotency_key, first.asked.idempotency_key, "the same key")
    same(settle(store, first).status, "conflict", "a stale settlement")


@case(PROPOSAL_WORKER_CONTRACT, "02b one that holds, or was lost too often, is not taken over, and the next one is")
def _held(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    claimed(store, "a", on_lost="hold")
    claimed(store, "b", on_lost="hold")
    clock.advance(LEASE_MS / 1000)
    approved(store, "c")
    found = take(store)
    same(found and found.id, "c", "what is claimed")
    same({stored(store, each).execution and stored(store, each).execution.status for each in "ab"}, {"unknown"}, "held")  # type: ignore[union-attr]
    same(take(store), None, "nothing is left")
    clock.advance(LEASE_MS / 1000)
    same(store.claim_next_proposal("worker-1", LEASE_MS, clock.now, most=1), None, "what was lost too often")
    execution = stored(store, "c").execution
    same(execution and execution.status, "unknown", "held as well")


@case(PROPOSAL_WORKER_CONTRACT, "03 expiry does nothing early, obeys its limit, and touches no approved one")
def _expiry(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    for name, seconds in (("b", 2), ("a", 1), ("c", 3)):
        made(store, name, expires_at=NOW_MS + seconds * 1000)
    made(store, "never")
    approved(store, "approved", expires_at=NOW_MS + 1)
    same(store.expire_due_proposals(clock.now, 10), [], "early")
    now = clock.advance(3)
    batches = [[one.id for one in store.expire_due_proposals(now, 2)] for _ in range(3)]
    same(batches, [["a", "b"], ["c"], []], "in the order of their deadlines")
    audit = stored(store, "c").audit
    same(audit and (audit.actor_ref, audit.via, audit.at), ("system", "expiry", NOW_MS + 3000), "the audit")
    same([stored(store, each).decision for each in ("never", "approved")], ["pending", "approved"], "the others")


@case(PROPOSAL_WORKER_CONTRACT, "04 a renewal moves discovery, and a settled one is never found")
def _renewed(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    approved(store)
    held = take(store)
    assert held is not None
    clock.advance(20)
    same(store.renew_proposal(MINE, "p1", *fence(held), LEASE_MS).status, "applied", "renewed")
    clock.advance(20)
    same(take(store), None, "within the renewed lease")
    needed(settle(store, held))
    clock.advance(3600)
    same(take(store), None, "settled")


@case(PROPOSAL_WORKER_CONTRACT, "05 pending, rejected and failed ones are never found")
def _never(subject: StoreSubject) -> None:
    store = subject.store
    made(store, "pending")
    made(store, "rejected")
    decide(store, "rejected", "rejected")
    needed(settle(store, claimed(store, "failed"), failed()))
    subject.clock.advance(3600)
    same(take(store), None, "nothing to do")


@case(PROPOSAL_WORKER_CONTRACT, "06 work is found in the order of its creation")
def _in_order(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    names = [f"p{place}" for place in (3, 1, 2, 5, 4)]
    for name in names:
        approved(store, name)
        clock.advance(0.001)
    found = [take(store) for _ in range(6)]
    same([one and one.id for one in found], [*names, None], "ids")


@case(PROPOSAL_WORKER_CONTRACT, "07 an invalid worker, lease, limit or clock is rejected on an empty table too")
def _invalid(subject: StoreSubject) -> None:
    store, now = subject.store, subject.clock.now
    bad: tuple[tuple[Any, Any, Any], ...] = (
        ("", LEASE_MS, now),
        ("w" * 256, LEASE_MS, now),
        (None, LEASE_MS, now),
        ("w", 0, now),
        ("w", 1.5, now),
        ("w", LEASE_MS, now.replace(tzinfo=None)),
    )
    for given in bad:
        refused(lambda given=given: store.claim_next_proposal(*given), f"{given}")  # type: ignore[misc]
    for limit in (0, -1, 1001, math.inf, True):
        refused(lambda limit=limit: store.expire_due_proposals(now, limit), f"limit {limit}")  # type: ignore[misc]
        refused(lambda limit=limit: store.due_outcomes(now, limit), f"limit {limit}")  # type: ignore[misc]
    refused(lambda: store.claim_outcome("p1", 0), "a lease of nothing")


def replacing(store: AgentStore, name: str, **more: Any) -> str:  # noqa: ANN401 - any field
    return store.create_proposal(asked(name, **{"replacement_key": "order-1", **more}), supersede=True).status


@case(PROPOSAL_REPLACEMENT_CONTRACT, "01 a newer one of the group supersedes the pending one")
def _superseded(subject: StoreSubject) -> None:
    store = subject.store
    same([replacing(store, "old"), replacing(store, "new")], ["applied", "applied"], "creations")
    old = stored(store, "old")
    audit = old.audit and (old.audit.actor_ref, old.audit.via, old.audit.at)
    seen = (old.decision, old.superseded_by, audit, old.delivery and old.delivery.status)
    same(seen, ("superseded", "new", ("system", "replacement", NOW_MS), "none"), "the old one")
    same(stored(store, "new").decision, "pending", "the new one")
    same([decide(store, word, "old").status for word in ("approved", "rejected")], ["conflict"] * 2, "it is final")
    same(store.create_proposal(asked("third", replacement_key="order-1")).status, "conflict", "unless it supersedes")


@case(PROPOSAL_REPLACEMENT_CONTRACT, "02 another requester, tenant, thread, tool or key is another group")
def _other_groups(subject: StoreSubject) -> None:
    store = subject.store
    replacing(store, "old")
    others: tuple[dict[str, Any], ...] = (
        {"scope": replace(MINE, actor_ref="bo")},
        {"scope": replace(MINE, tenant_ref=None)},
        {"scope": replace(MINE, thread_id="thread-2")},
        {"tool_name": "other"},
        {"replacement_key": "order-2"},
        {"replacement_key": None},
    )
    same({replacing(store, f"p{place}", **each) for place, each in enumerate(others)}, {"applied"}, "creations")
    same(stored(store, "old").decision, "pending", "the old one")


@case(PROPOSAL_REPLACEMENT_CONTRACT, "03 an approved one stays, and the creation conflicts until it is over")
def _under_way(subject: StoreSubject) -> None:
    store = subject.store
    replacing(store, "old")
    decide(store, "approved", "old")
    before = snapshot(stored(store, "old"))
    same(replacing(store, "new"), "conflict", "under way")
    same((snapshot(stored(store, "old")), store.find_proposal("new")), (before, None), "rows")
    held = take(store)
    assert held is not None
    same(replacing(store, "new"), "conflict", "executing")
    needed(settle(store, held))
    same(replacing(store, "new"), "applied", "once it is over")
    same(stored(store, "old").decision, "approved", "the old one")


@case(PROPOSAL_REPLACEMENT_CONTRACT, "04 at its deadline the old one is expired instead")
def _expired(subject: StoreSubject) -> None:
    store = subject.store
    replacing(store, "old", expires_at=NOW_MS + 1000)
    subject.clock.advance(1)
    same(replacing(store, "new"), "applied", "the new one")
    old = stored(store, "old")
    same((old.decision, old.superseded_by, old.audit and old.audit.via), ("expired", None, "expiry"), "the old one")


@case(PROPOSAL_REPLACEMENT_CONTRACT, "05 the old creation again supersedes nothing")
def _replay(subject: StoreSubject) -> None:
    store = subject.store
    replacing(store, "old")
    replacing(store, "new")
    same(replacing(store, "old"), "unchanged", "the replay")
    same([stored(store, each).decision for each in ("old", "new")], ["superseded", "pending"], "rows")


@case(PROPOSAL_REPLACEMENT_CONTRACT, "06 of racing creations one is left pending", commits=True)
def _racing(subject: StoreSubject) -> None:
    store = subject.store
    replacing(store, "old")
    names = [f"p{place}" for place in range(4)]
    answers = subject.parallel([partial(replacing, store, name) for name in names])
    pending = [one.id for one in store.list_proposals(MINE, decision="pending")]
    same((len(pending), answers), (1, ["applied"] * 4), "pending")
    same(len(store.list_proposals(MINE, decision="superseded")), 4, "superseded")


@case(PROPOSAL_REPLACEMENT_CONTRACT, "07 what was settled is not in the way of a new one")
def _again(subject: StoreSubject) -> None:
    store = subject.store
    settled(store, "done", replacement_key="order-1")
    same([replacing(store, "next"), stored(store, "done").decision], ["applied", "approved"], "the next")
