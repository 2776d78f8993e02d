"""Proposals decided in the chat's words: once, by whom they are for, and nothing else happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.test import override_settings

from agent.conf import setting_problems
from agent.domain.actor import Actor
from agent.domain.proposals import Proposal
from agent.domain.runs import Run
from agent.errors import IdempotencyKeyReused, NotAllowed, NotFound
from agent.flows import proposals
from agent.flows.admission import Admitted, submit
from agent.flows.starts import Send
from agent.flows.text_decisions import Decided, said_in
from tests.flows.conftest import ALICE, Site
from tests.flows.proposing import LEAD, SETTINGS, Desk, declare, scripted

BOB = Actor("bob")
MakeDesk = Callable[..., Desk]


@pytest.fixture
def desk(site: Callable[..., Site]) -> MakeDesk:
    def make(settings: dict[str, Any] | None = None, **options: Any) -> Desk:
        made = Desk(site(scripted, **{**SETTINGS, **(settings or {})}))
        declare(made, **{"approver": "requester", **options})
        return made

    return make


def say(run: Run, text: str, *, actor: Actor = ALICE, **fields: Any) -> Any:
    return submit(actor, Send(message=text, thread_id=run.thread_id, **fields))


def decided(run: Run, text: str, **fields: Any) -> Decided:
    outcome = say(run, text, **fields)
    assert isinstance(outcome, Decided), outcome
    return outcome


def test_yes_approves_the_one_that_waits_and_stores_nothing(desk: MakeDesk) -> None:
    made = desk({"QUOTA": {"day": {"tokens": 1}}, "QUOTA_POLICY": "governance.quota.LedgerQuota"})
    run, proposal = made.asked()
    before = [message.id for message in made.site.messages(run.thread_id)]
    told = decided(run, "Yes.")
    assert (told.status, told.proposal_id, told.decision) == ("applied", proposal.id, "approved")
    assert [message.id for message in made.site.messages(run.thread_id)] == before
    audit = made.again(proposal).audit
    assert audit is not None
    assert (audit.actor_ref, audit.via, audit.remember) == ("alice", "text", False)
    assert made.work() == 1
    assert len(made.refunds) == 1


def test_no_rejects_and_remember_is_kept(desk: MakeDesk) -> None:
    made = desk()
    run, first = made.asked()
    assert decided(run, "no").decision == "rejected"
    second = made.asked("refund order 2", thread_id=run.thread_id)[1]
    assert decided(run, "yes always in this conversation").proposal_id == second.id
    audit = made.again(second).audit
    assert audit is not None
    assert audit.remember
    assert made.again(first).decision == "rejected"


def test_without_one_that_waits_yes_is_an_ordinary_message(desk: MakeDesk) -> None:
    made = desk()
    run, _ = made.asked()
    decided(run, "no")
    ordinary = say(run, "yes")
    assert isinstance(ordinary, Admitted)
    made.site.drive(ordinary.run_id)
    fresh = made.site.turn("refund order 7")
    assert isinstance(say(fresh, "no, don't approve"), Admitted)


def two(made: Desk) -> tuple[Run, list[Proposal]]:
    run, _ = made.asked("refund order 1"), None
    made.asked("refund order 2", thread_id=run[0].thread_id)
    return run[0], list(proposals.page(ALICE, run[0].thread_id).items)


def test_of_several_that_wait_the_id_says_which(desk: MakeDesk) -> None:
    made = desk()
    run, (first, second) = two(made)
    told = decided(run, "yes")
    assert told.status == "ambiguous"
    assert all(f"#{each.id}" in told.text for each in (first, second))
    assert {made.again(each).decision for each in (first, second)} == {"pending"}
    assert decided(run, f"yes #{second.id.removeprefix('proposal-')[:10]}").proposal_id == second.id
    assert made.again(first).decision == "pending"


def test_an_unknown_id_is_told_and_decides_nothing(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked()
    assert decided(run, "yes #feedbeef").status == "not_found"
    assert made.again(proposal).decision == "pending"


def test_a_decision_that_stands_is_told(desk: MakeDesk) -> None:
    made = desk()
    run, proposal = made.asked()
    decided(run, "yes")
    assert decided(run, f"yes #{proposal.id}").status == "unchanged"
    assert decided(run, f"no #{proposal.id}").status == "conflict"


def test_what_is_for_others_to_decide_is_not_decided_by_its_requester(desk: MakeDesk) -> None:
    made = desk(approver="role:lead")
    run, proposal = made.asked()
    ordinary = say(run, "yes")
    assert isinstance(ordinary, Admitted)
    made.site.drive(ordinary.run_id)
    assert decided(run, f"yes #{proposal.id}").status == "not_found"
    assert made.again(proposal).decision == "pending"
    with pytest.raises(NotAllowed):
        say(run, "yes", actor=LEAD)


def test_under_four_eyes_the_requester_says_yes_in_vain(desk: MakeDesk) -> None:
    made = desk(approver="role:lead", four_eyes=True)
    run, proposal = made.asked(actor=replace(ALICE, roles=("lead",)))
    assert isinstance(say(run, "yes", actor=replace(ALICE, roles=("lead",))), Admitted)
    assert made.again(proposal).decision == "pending"


def test_strangers_and_unknown_threads_are_refused_as_ever(desk: MakeDesk) -> None:
    made = desk()
    run, _ = made.asked()
    with pytest.raises(NotAllowed):
        say(run, "yes", actor=BOB)
    with pytest.raises(NotFound):
        submit(ALICE, Send(message="yes", thread_id="nowhere"))


def test_a_key_that_is_sent_again_answers_the_first_decision(desk: MakeDesk) -> None:
    made = desk()
    run, _ = made.asked()
    first = decided(run, "yes", idempotency_key="k", fingerprint="f")
    assert decided(run, "yes", idempotency_key="k", fingerprint="f") == first
    with pytest.raises(IdempotencyKeyReused):
        say(run, "yes", idempotency_key="k", fingerprint="other")


@pytest.mark.parametrize("wrong", ["en", ["de"], [1], {"en": 1}])
def test_a_vocabulary_that_is_none_is_refused(wrong: object) -> None:
    with override_settings(AGENT={"DECISION_VOCABULARY": wrong}):
        assert any("DECISION_VOCABULARY" in problem for problem in setting_problems())


def test_yes_with_a_file_or_to_answer_again_is_an_ordinary_message() -> None:
    plain = Send(message="yes", thread_id="t")
    assert said_in(plain) is not None
    for other in (
        replace(plain, attachments=("m",)),
        replace(plain, regenerate=True),
        replace(plain, thread_id=None),
    ):
        assert said_in(other) is None
