"""PROPOSAL_CONTRACT (spec 02 §5.7), against a settable clock."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from agent.domain.commands import UNSET
from agent.domain.proposal_json import snapshot
from agent.domain.proposals import Decider, NewProposal, ProposalCursor, ProposalScope
from agent.errors import NotAllowed
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.proposal_rows import (
    LEAD,
    LEASE_MS,
    MINE,
    NOW_MS,
    OTHERS,
    approved,
    asked,
    claim,
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
    succeeded,
)
from agent.testing.contracts.rows import ANA
from agent.testing.contracts.store import StoreCase, StoreSubject, case

PROPOSAL_CONTRACT: list[StoreCase] = []


@case(PROPOSAL_CONTRACT, "01 the creation is a snapshot, and the same creation again is unchanged")
def _snapshot(subject: StoreSubject) -> None:
    store = subject.store
    given = {"order": 1, "lines": [{"b": 2, "a": 1}]}
    made(store, input=given)
    before = snapshot(stored(store))
    given["order"] = 2
    stored(store).asked.input["lines"].append("x")
    same(snapshot(stored(store)), before, "after changes of the input and of a copy")
    again = asked(input={"lines": [{"a": 1, "b": 2}], "order": 1})
    same(store.create_proposal(again).status, "unchanged", "another order of keys")
    other = store.create_proposal(asked(input={"order": 3}))
    same((other.status, other.proposal and snapshot(other.proposal)), ("conflict", before), "another payload")
    for scope in OTHERS:
        foreign = store.create_proposal(asked(scope=scope))
        same((foreign.status, foreign.proposal), ("conflict", None), f"another owner: {scope}")


@case(PROPOSAL_CONTRACT, "02 in a wrong scope nothing is seen and nothing is changed")
def _scopes(subject: StoreSubject) -> None:
    store = subject.store
    held = claimed(store)
    before = snapshot(held)
    for scope in OTHERS:
        same(store.get_proposal(scope, "p1"), None, "get")
        same(store.list_proposals(scope), [], "list")
        foreign = replace(held, asked=replace(held.asked, scope=scope))
        answers = [
            decide(store, "rejected", scope=scope),
            claim(store, scope=scope),
            store.renew_proposal(scope, "p1", *fence(held), LEASE_MS),
            settle(store, foreign),
            store.settle_unknown_proposal(scope, "p1", None, Decider(actor=LEAD, reason="x")),
        ]
        same([(answer.status, answer.proposal) for answer in answers], [("not_found", None)] * 5, f"{scope}")
    same(snapshot(stored(store)), before, "the row")
    same(claim(store, "nobody").status, "not_found", "an unknown id")


@case(PROPOSAL_CONTRACT, "03 of eight racing decisions one is applied, and it stands", commits=True)
def _race(subject: StoreSubject) -> None:
    store = subject.store
    made(store)
    same(claim(store).status, "conflict", "pending is not claimed")
    words = ["approved", "rejected"] * 4
    answers = subject.parallel([partial(decide, store, word) for word in words])
    same([answer.applied for answer in answers].count(True), 1, "applied")
    stands = stored(store)
    same(stands.audit and (stands.audit.at, stands.audit.actor_ref), (NOW_MS, "lead"), "the audit")
    queued = stands.execution is not None and stands.execution.status == "queued"
    same(stands.decision == "approved", queued, "approved if and only if queued")
    before = snapshot(stands)
    subject.clock.advance(5)
    same(decide(store, stands.decision).status, "unchanged", "the same again")
    same(decide(store, "rejected" if queued else "approved").status, "conflict", "the other one")
    same(store.create_proposal(asked()).status, "unchanged", "the creation again")
    same(snapshot(stored(store)), before, "the row, byte for byte")


@case(PROPOSAL_CONTRACT, "03b under four eyes the requester decides nothing, at the guarded move")
def _four_eyes(subject: StoreSubject) -> None:
    store = subject.store
    made(store, four_eyes=True)
    for word in ("approved", "rejected"):
        try:
            decide(store, word, actor=ANA)
        except NotAllowed:
            continue
        raise ContractMismatch("the requester decided their own proposal")
    same(stored(store).decision, "pending", "the row")
    same(decide(store, actor=replace(ANA, tenant_ref=None)).status, "applied", "somebody else")


@case(PROPOSAL_CONTRACT, "04 at exactly its deadline a proposal expires, and not before")
def _deadline(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    for proposal_id in ("late", "early"):
        made(store, proposal_id, expires_at=NOW_MS + 10_000)
    same(decide(store, "expired", "late", actor=None).status, "conflict", "early")
    clock.advance(9.999)
    same(decide(store, "approved", "early").status, "applied", "a millisecond before it")
    clock.advance(0.001)
    same(
        [decide(store, word, "late").status for word in ("approved", "approved", "rejected")], ["expired"] * 3, "at it"
    )
    same(decide(store, "expired", "late", actor=None).status, "unchanged", "the deadline again")
    late = stored(store, "late")
    audit = late.audit and (late.audit.actor_ref, late.audit.via, late.audit.at)
    same((late.decision, late.execution, audit), ("expired", None, ("system", "expiry", NOW_MS + 10_000)), "the row")
    clock.advance(3600)
    same(claim(store, "early").status, "applied", "what is approved never expires")


@case(PROPOSAL_CONTRACT, "05 of eight racing claims one wins, and only the holder writes", commits=True)
def _claims(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    approved(store)
    answers = subject.parallel([partial(claim, store)] * 8)
    [won] = [answer for answer in answers if answer.applied]
    first = needed(won)
    same({answer.status for answer in answers if not answer.applied}, {"conflict"}, "the others")
    clock.advance(LEASE_MS / 1000 - 0.001)
    same(store.renew_proposal(MINE, "p1", *fence(first), 1).status, "applied", "a renewal for less")
    same(fence(stored(store)), fence(first), "keeps the token")
    clock.advance(0.001)
    same(store.renew_proposal(MINE, "p1", *fence(first), LEASE_MS).status, "expired", "at the end of the lease")
    same(settle(store, first).status, "expired", "a settlement there")
    second = needed(claim(store))
    expect(fence(second)[0] != fence(first)[0], "a new token")
    same(second.execution and second.execution.generation, 2, "the next generation")
    same(second.asked.idempotency_key, first.asked.idempotency_key, "the same idempotency key")
    same(settle(store, first).status, "conflict", "a stale settlement")
    same(store.renew_proposal(MINE, "p1", *fence(first), LEASE_MS).status, "conflict", "a stale renewal")
    clock.advance(20)
    same(store.renew_proposal(MINE, "p1", *fence(second), LEASE_MS).status, "applied", "a renewal")
    clock.advance(20)
    same(settle(store, second).status, "applied", "a settlement within it")
    same([claim(store).status, settle(store, second).status], ["conflict", "conflict"], "once it is settled")


@case(PROPOSAL_CONTRACT, "05b a lost execution is held where its tool says so, or when it was lost too often")
def _lost(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    claimed(store, "hold", on_lost="hold")
    approved(store, "retry")
    for _ in range(2):
        needed(claim(store, "retry", most=2))
        clock.advance(LEASE_MS / 1000)
    for proposal_id, generation in (("hold", 1), ("retry", 2)):
        answers = [claim(store, proposal_id, most=2).status for _ in range(2)]
        lost = stored(store, proposal_id).execution
        seen = lost and (lost.status, lost.generation, lost.lease)
        same((answers, seen), (["conflict"] * 2, ("unknown", generation, None)), proposal_id)
        same((stored(store, proposal_id).outcome, stored(store, proposal_id).delivery), (None, None), "no outcome yet")


@case(PROPOSAL_CONTRACT, "05c a person says what became of an unknown one, or lets it run again with the same key")
def _unknown(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    by = Decider(actor=LEAD, reason="I looked it up")
    for proposal_id in ("done", "not done", "again"):
        claimed(store, proposal_id, on_lost="hold")
        same(store.settle_unknown_proposal(MINE, proposal_id, None, by).status, "conflict", "while somebody works")
    clock.advance(LEASE_MS / 1000)
    for proposal_id in ("done", "not done", "again"):
        claim(store, proposal_id)
    done = needed(store.settle_unknown_proposal(MINE, "done", succeeded(), by))
    told = done.execution and [(audit.actor_ref, audit.reason) for audit in done.execution.settled_by]
    same((done.outcome and done.outcome.status, told), ("succeeded", [("lead", "I looked it up")]), "succeeded")
    undone = needed(store.settle_unknown_proposal(MINE, "not done", failed("No."), by))
    same(undone.execution and (undone.execution.status, undone.execution.error), ("failed", "No."), "failed")
    needed(store.settle_unknown_proposal(MINE, "again", None, by))
    again = needed(claim(store, "again"))
    same(again.execution and again.execution.generation, 2, "the generation goes on")
    same(store.settle_unknown_proposal(MINE, "done", succeeded(), by).status, "conflict", "twice")


@case(PROPOSAL_CONTRACT, "06 lists are pages in order, by decision, and keep what failed")
def _lists(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    for proposal_id in ("b", "a", "c"):
        made(store, proposal_id)
    clock.advance(1)
    needed(settle(store, claimed(store, "0"), failed()))
    decide(store, "rejected", "b")

    def ids(**query: Any) -> list[str]:  # noqa: ANN401 - any part of a query
        return [one.id for one in store.list_proposals(MINE, **query)]

    same((ids(), ids(limit=1)), (["a", "b", "c", "0"], ["a"]), "by time, then id")
    same((ids(decision="rejected"), ids(decision="superseded")), (["b"], []), "by decision")
    pages = [ids(limit=2, after=ProposalCursor(created_at=NOW_MS, id=last)) for last in ("a", "b", "c")]
    same(pages, [["b", "c"], ["c", "0"], ["0"]], "above a cursor")
    same(ids(after=ProposalCursor(created_at=NOW_MS + 1000, id="0")), [], "above the last")
    execution = stored(store, "0").execution
    same(execution and (execution.status, execution.error), ("failed", "The shop is closed."), "a failure")


@case(PROPOSAL_CONTRACT, "07 an empty tenant is none of no tenant, and blanks and case count")
def _exact_scopes(subject: StoreSubject) -> None:
    store = subject.store
    for place, scope in enumerate((MINE, *OTHERS)):
        made(store, f"p{place}", scope)
    for place, scope in enumerate((MINE, *OTHERS)):
        same([one.id for one in store.list_proposals(scope)], [f"p{place}"], f"{scope}")
    same([store.get_proposal(MINE, each) for each in ("P0", "p0 ", " p0")], [None] * 3, "ids")


@case(PROPOSAL_CONTRACT, "11 ties are in the order of their ids before the limit cuts")
def _ties(subject: StoreSubject) -> None:
    store = subject.store
    names = [f"p{place:02}" for place in range(20)]
    for name in reversed(names):
        made(store, name)
    read: list[str] = []
    while page := store.list_proposals(
        MINE, limit=3, after=ProposalCursor(created_at=NOW_MS, id=read[-1] if read else "")
    ):
        read += [one.id for one in page]
    same(read, names, "all pages")
    same([one.id for one in store.list_proposals(MINE, limit=3)], names[:3], "the first")


@case(PROPOSAL_CONTRACT, "13 NUL, lone surrogates and emoji survive everywhere, and nothing collides")
def _odd_texts(subject: StoreSubject) -> None:
    store = subject.store
    odd = ("a\x00", "a\ud800", "a\ufffd", "a😀", "a\\u0000")
    for text in odd:
        scope = ProposalScope(tenant_ref=text, actor_ref=text, thread_id=text)
        held = claimed(store, text, scope, input={text: text}, tool_name=text)
        needed(settle(store, held, succeeded(result={text: [text]})))
    for text in odd:
        scope = ProposalScope(tenant_ref=text, actor_ref=text, thread_id=text)
        [found] = store.list_proposals(scope)
        result = found.execution and found.execution.result
        same((found.id, found.asked.input, result), (text, {text: text}, {text: [text]}), repr(text))
        same(found.scope == scope, True, "scope")


@case(PROPOSAL_CONTRACT, "15 what was asked for never changes, and what is absent stays absent")
def _immutable(subject: StoreSubject) -> None:
    store = subject.store
    base: NewProposal = asked(preparation_input=None, confirmation=None)
    same(store.create_proposal(base).status, "applied", "a raw null")
    same(stored(store).asked.preparation_input, None, "is a value")
    changes: tuple[dict[str, Any], ...] = (
        {"preparation_input": UNSET},
        {"preparation_input": {}},
        {"input": {}},
        {"confirmation": {}},
        {"execution_context": {"requestId": "req-2", "agentName": "support"}},
        {"expires_at": 1},
        {"approver": "requester"},
        {"four_eyes": True},
        {"on_lost": "hold"},
        {"replacement_key": "k"},
        {"idempotency_key": "k"},
    )
    for change in changes:
        same(store.create_proposal(replace(base, **change)).status, "conflict", f"{change}")
    made(store, "absent", preparation_input=UNSET)
    expect(stored(store, "absent").asked.preparation_input is UNSET, "absent stays absent")
    expect('"preparationInput"' not in snapshot(stored(store, "absent")), "and is not written")
    needed(settle(store, claimed(store, "p3"), succeeded(result=UNSET)))
    execution = stored(store, "p3").execution
    expect(execution is not None and execution.result is UNSET, "no result stays none")


@case(PROPOSAL_CONTRACT, "17 rows without an index are filled in, and then there is nothing to do")
def _backfill(subject: StoreSubject) -> None:
    store: AgentStore = subject.store
    settled(store)
    same(store.backfill_proposal_index(10), 0, "nothing to do")
    refused(lambda: store.backfill_proposal_index(0), "a limit of none")
