"""Action proposals: asked for, decided, carried out, told. Tokens are each store's own, and are not compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from agent.domain.actor import Actor
from agent.domain.clock import epoch_ms
from agent.domain.commands import AppendMessage
from agent.domain.proposals import Decider, Lease, Proposal, ProposalAnswer, ProposalScope, Settlement
from agent.store.base import AgentStore
from agent.store.proposals import SettlesAndTells
from agent.testing.contracts.proposal_rows import asked, telling
from tests.store.twins.machine import ACTORS, Twins, actors, limits

proposals = st.sampled_from([f"p{number}" for number in range(4)])
words = st.sampled_from(["approved", "approved", "rejected", "expired", "superseded"])
ends = st.sampled_from([None, Settlement(status="succeeded", result=[1]), Settlement(status="failed", error="No.")])
LEASE_MS = 1000
OWNER = ACTORS[0]


class Proposing(Twins):
    def told(self, call: Callable[[AgentStore], Any]) -> None:
        self.both(lambda store: _without_tokens(call(store)))

    @rule(
        proposal=proposals,
        thread=Twins.threads,
        key=st.sampled_from([None, "k", "k"]),
        expires=st.sampled_from([None, 0, 1, 1000]),
        on_lost=st.sampled_from(["retry", "hold"]),
        supersede=st.booleans(),
        undo=st.booleans(),
    )
    def propose(
        self,
        proposal: str,
        thread: str,
        key: str | None,
        expires: int | None,
        on_lost: str,
        supersede: bool,
        undo: bool,
    ) -> None:
        self.clock.advance(0.001)  # of one instant each store has its own order
        until = None if expires is None else epoch_ms(self.clock.now) + expires
        new = asked(proposal, _scope(thread), replacement_key=key, expires_at=until, on_lost=on_lost)
        self.both(lambda store: _without_tokens(store.create_proposal(new, supersede=supersede)), undo=undo)

    @rule(proposal=proposals, thread=Twins.threads, word=words, actor=actors)
    def decide_proposal(self, proposal: str, thread: str, word: str, actor: Actor) -> None:
        by = Decider(actor=actor, via="web", reason="Why not")
        self.told(lambda store: store.decide_proposal(_scope_of(store, proposal, thread), proposal, word, by))

    @rule(proposal=proposals, thread=Twins.threads, most=st.sampled_from([1, 2]))
    def take(self, proposal: str, thread: str, most: int) -> None:
        self.told(
            lambda store: store.claim_proposal(_scope_of(store, proposal, thread), proposal, LEASE_MS, "w1", most=most)
        )

    @rule(most=st.sampled_from([1, 2]))
    def take_next(self, most: int) -> None:
        self.told(lambda store: store.claim_next_proposal("w2", LEASE_MS, self.clock.now, most=most))

    @rule(proposal=proposals, thread=Twins.threads, late=st.sampled_from([0, 1]), end=ends, at_once=st.booleans())
    def renew_or_settle(self, proposal: str, thread: str, late: int, end: Settlement | None, at_once: bool) -> None:
        def call(store: AgentStore) -> ProposalAnswer:
            token, generation = _fence(store.find_proposal(proposal))
            held = (_scope_of(store, proposal, thread), proposal, token, generation - late)
            if end is None:
                return store.renew_proposal(*held, LEASE_MS)
            if at_once and isinstance(store, SettlesAndTells):
                return store.settle_and_tell(*held, end, telling)
            return store.settle_proposal(*held, end)

        self.told(call)

    @rule(proposal=proposals, thread=Twins.threads, end=ends)
    def settle_unknown(self, proposal: str, thread: str, end: Settlement | None) -> None:
        by = Decider(actor=OWNER, via="admin", reason="I looked")
        self.told(lambda store: store.settle_unknown_proposal(_scope_of(store, proposal, thread), proposal, end, by))

    @rule(limit=limits)
    def expire(self, limit: int) -> None:
        self.told(lambda store: store.expire_due_proposals(self.clock.now, limit))

    @rule(proposal=proposals)
    def take_outcome(self, proposal: str) -> None:
        self.told(lambda store: store.claim_outcome(proposal, LEASE_MS))

    @rule(proposal=proposals, thread=Twins.threads, direct=st.booleans(), elsewhere=st.booleans(), undo=st.booleans())
    def tell(self, proposal: str, thread: str, direct: bool, elsewhere: bool, undo: bool) -> None:
        def call(store: AgentStore) -> Any:
            found = store.find_proposal(proposal)
            place = thread if found is None or elsewhere else found.scope.thread_id
            lease = found and found.delivery and found.delivery.lease
            token = None if direct else lease.token if lease else "invented"
            said = AppendMessage(thread_id=place, role="assistant", content="Done.")
            return _without_tokens(store.admit_outcome(proposal, token, said))

        self.both(call, undo=undo)

    def compare_everything(self) -> None:
        for thread in self.seen_threads:
            self.told(lambda store, key=thread: store.list_proposals(_scope(key)))  # type: ignore[misc]
        self.told(lambda store: sorted(store.due_outcomes(self.clock.now, 100), key=lambda one: one.id))
        super().compare_everything()


def _scope(thread_id: str) -> ProposalScope:
    return ProposalScope(tenant_ref=OWNER.tenant_ref, actor_ref=OWNER.ref, thread_id=thread_id)


def _scope_of(store: AgentStore, proposal_id: str, thread_id: str) -> ProposalScope:
    """Its own, but for the last of them: that one is asked for in any thread."""
    found = store.find_proposal(proposal_id)
    return _scope(thread_id) if found is None or proposal_id == "p3" else found.scope


def _fence(proposal: Proposal | None) -> tuple[str, int]:
    execution = proposal and proposal.execution
    if not execution or execution.lease is None:
        return "invented", 1
    return execution.lease.token, execution.generation


def _without_tokens(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_without_tokens(each) for each in answer]
    if isinstance(answer, ProposalAnswer):
        return replace(answer, proposal=_without_tokens(answer.proposal))
    if not isinstance(answer, Proposal):
        return answer
    execution, delivery = answer.execution, answer.delivery
    return replace(
        answer,
        execution=execution and replace(execution, lease=_same(execution.lease)),
        delivery=delivery and replace(delivery, lease=_same(delivery.lease)),
    )


def _same(lease: Lease | None) -> Lease | None:
    return lease and replace(lease, token="a token")
