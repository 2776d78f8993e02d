"""The inbox: what waits, for whom, decided singly and at once, over the page and the API; and what was decided."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from agent.domain.actor import Actor
from agent.domain.clock import epoch_ms
from agent.domain.proposals import Proposal, ProposalScope
from agent.models import ToolCall
from agent.store import get_store
from agent.testing.contracts import proposal_rows, rows
from governance import queries
from governance.days import DayRange
from governance.queries.selection import Selection
from tests.console.conftest import SignIn
from tests.console.pages import html, text
from tests.store.subjects import count_queries

pytestmark = pytest.mark.django_db

INBOX = "/admin/governance/approvals/"
API = "/governance/api/approvals"
SEES, DECIDES = "agent.view_actionproposal", "agent.decide_actionproposal"
ALICE = Actor("alice")
TRICKY = "safe\u202egnp.exe"


@pytest.fixture
def lead(staff: SignIn) -> Client:
    """Support: may look into the inbox and decide, has the role `lead`, and no other permission."""
    client = staff(SEES, DECIDES)
    _user(client).groups.add(Group.objects.create(name="lead"))
    return client


def _user(client: Client) -> User:
    return User.objects.get(pk=client.session["_auth_user_id"])


def proposed(name: str = "1", *, actor: Actor = ALICE, **more: Any) -> Proposal:
    """A refund that waits, asked in a conversation of the actor."""
    store = get_store()
    thread_id = rows.new_thread(store, actor)
    scope = ProposalScope(tenant_ref=actor.tenant_ref, actor_ref=actor.ref, thread_id=thread_id)
    return proposal_rows.made(store, f"proposal-{name}", scope, **more)


def waits(call_id: str = "call-1", *, actor: Actor = ALICE, **more: Any) -> str:
    """A call that its turn waits with."""
    store = get_store()
    message = rows.answer(store, rows.new_thread(store, actor))
    rows.waiting_call(store, message, call_id, **{"approver": "role:lead", **more})
    ToolCall.objects.filter(pk=call_id).update(actor_ref=actor.ref, tenant_ref=actor.tenant_ref)
    return call_id


def post(client: Client, act: str, subject: str, digest: str, *, card: bool = False, **more: Any) -> Any:
    headers = {"X-Card": "1"} if card else {}
    return client.post(INBOX, {"act": act, "id": subject, "digest": digest, **more}, headers=headers)


def stands(proposal: Proposal) -> Proposal:
    found = get_store().find_proposal(proposal.id)
    assert found is not None
    return found


def test_nothing_waiting_is_said(lead: Client) -> None:
    assert "Nothing is waiting for a decision." in text(lead, INBOX)


def test_a_card_says_what_for_whom_and_why_to_who_has_no_other_permission(lead: Client) -> None:
    User.objects.create_user("alice", first_name="Alice", last_name="Moreno", pk=4711)
    said = {"title": "Refund order 1042", "verb": "Refund", "detail": "The lamp arrived broken."}
    proposed(actor=Actor("4711"), confirmation=said)
    page = text(lead, INBOX)
    for words in ("1 waiting for you", "Refund order 1042", "asked by Alice Moreno", "agent “support”", "no deadline"):
        assert words in page
    assert "The lamp arrived broken." in page
    assert "refund_order cents 500 order 1042" in page
    assert "Cost so far" not in page  # who decides sees no spend
    assert 'class="gov-badge">1<' in html(lead, INBOX)


def test_approving_in_place_answers_with_what_became_of_it(lead: Client) -> None:
    proposal = proposed()
    answer = post(lead, "approve", proposal.id, proposal.digest, card=True, remember="1")
    assert answer.status_code == 200
    assert "Approved by staff0 here in the console" in answer.content.decode()
    audit = stands(proposal).audit
    assert audit is not None
    assert (audit.actor_ref, audit.via, audit.remember) == (str(_user(lead).pk), "admin", True)
    again = post(lead, "approve", proposal.id, proposal.digest, card=True)
    assert (again.status_code, stands(proposal).audit) == (200, audit)
    other = post(lead, "reject", proposal.id, proposal.digest, card=True)
    assert other.status_code == 409
    assert "This was decided already." in other.content.decode()


def test_rejecting_keeps_the_reason_and_offers_it_again(lead: Client) -> None:
    first, second = proposed("1"), proposed("2")
    answer = post(lead, "reject", first.id, first.digest, reason="Not within 30 days.")
    assert answer.status_code == 302
    audit = stands(first).audit
    assert audit is not None
    assert audit.reason == "Not within 30 days."
    assert 'data-gov-reason="Not within 30 days."' in html(lead, INBOX)
    assert stands(second).audit is None
    decided = text(lead, INBOX, tab="decided")
    assert "refund_order alice rejected staff0 admin" in decided
    assert "Not within 30 days." in decided


def test_a_card_that_changed_decides_nothing(lead: Client) -> None:
    proposal = proposed()
    answer = post(lead, "approve", proposal.id, "0" * 64, card=True)
    assert answer.status_code == 409
    assert "This is not what you were shown" in answer.content.decode()
    assert post(lead, "approve", proposal.id, "").status_code == 400
    assert stands(proposal).decision == "pending"


def test_who_may_not_decide_is_told_who_may(staff: SignIn, lead: Client) -> None:
    for number, (approver, told) in enumerate(
        {
            "role:director": "Waits for somebody with the role director.",
            "shop.change_order": "Waits for somebody with the permission shop.change_order.",
            "requester": "Waits for alice, who asked for it.",
        }.items()
    ):
        proposal = proposed(str(number), approver=approver)
        assert told in text(lead, INBOX, who="all")
        assert post(lead, "approve", proposal.id, proposal.digest).status_code == 302
        assert stands(proposal).decision == "pending"
    assert "0 waiting for you 3 wait for others" in text(lead, INBOX)
    reader = staff(SEES)
    assert "You may look at this, not decide it." in text(reader, INBOX)
    proposal = proposed("own", approver="role:lead")
    assert post(reader, "approve", proposal.id, proposal.digest, card=True).status_code == 403
    assert stands(proposal).decision == "pending"


def test_a_superuser_answers_to_every_approver_but_not_to_four_eyes(admin_client: Client, admin_user: User) -> None:
    own = proposed("1", actor=Actor(str(admin_user.pk)), four_eyes=True)
    others = proposed("2", actor=Actor("bo", tenant_ref="north"), approver="role:director", four_eyes=True)
    assert "You asked for this yourself: under four eyes somebody else decides it." in text(
        admin_client, INBOX, who="all"
    )
    assert 'class="gov-badge">1<' in html(admin_client, INBOX)
    assert post(admin_client, "approve", own.id, own.digest, card=True).status_code == 403
    assert post(admin_client, "approve", others.id, others.digest, card=True).status_code == 200
    assert (stands(own).decision, stands(others).decision) == ("pending", "approved")


def test_another_tenants_cards_are_not_there(lead: Client) -> None:
    proposal, call = proposed(actor=Actor("bo", tenant_ref="north")), waits(actor=Actor("bo", tenant_ref="north"))
    assert "Nothing is waiting" in text(lead, INBOX, who="all")
    for subject in (proposal.id, call):
        assert lead.get(f"{INBOX}{subject}/").status_code == 404
        assert post(lead, "approve", subject, proposal.digest).status_code == 404
        body = json.dumps({"approved": True})
        assert lead.post(f"{API}/{subject}", body, content_type="application/json").status_code == 404
    assert lead.get(API).json() == []


def test_hostile_text_is_shown_whole_and_does_nothing(lead: Client) -> None:
    """B83: markup, marks that turn text around, and 100 kB of arguments."""
    title = f"URGENT: approve <script>alert(1)</script> {TRICKY}"
    proposed(confirmation={"title": title, "verb": "<b>Yes</b>"}, input={"text": "x" * 100_000, "name": TRICKY})
    page = html(lead, INBOX)
    assert "<script>alert" not in page
    assert "&lt;b&gt;Yes&lt;/b&gt;" in page
    assert "\u202e" not in page
    assert r"safe\u202egnp.exe" in page
    assert "x" * 100_000 in page


def test_several_are_decided_after_a_page_that_shows_them_each_to_its_own_end(lead: Client) -> None:
    """B79: a mixed choice; what came in meanwhile is left alone."""
    said = {"title": "Refund order 1042", "verb": "Refund", "detail": "The lamp arrived broken."}
    first, changed, gone = proposed("1", confirmation=said), proposed("2"), proposed("3")
    call = waits()
    digest = queries.pending_approvals(_all())[-1].digest or ""
    items = [f"{one.id} {one.digest}" for one in (first, gone)]
    items += [f"{changed.id} {'0' * 64}", f"{call} {digest}"]
    asked = lead.post(INBOX, {"act": "approve-several", "item": items})
    assert asked.status_code == 200
    assert asked.content.decode().count("gov-card-head") == 4
    assert "The lamp arrived broken." in asked.content.decode()
    assert {stands(one).decision for one in (first, changed, gone)} == {"pending"}
    proposal_rows.decide(get_store(), "rejected", gone.id, gone.scope)
    late = proposed("4")
    done = lead.post(INBOX, {"act": "approve-several", "item": items, "sure": "1"}).content.decode()
    assert "2 decided, 0 unchanged, 2 refused" in done
    assert [stands(one).decision for one in (first, changed, gone, late)] == [
        "approved",
        "pending",
        "rejected",
        "pending",
    ]
    assert ToolCall.objects.get(pk=call).decided_via == "admin"
    assert lead.post(INBOX, {"act": "approve-several"}).status_code == 400


def test_a_lost_execution_waits_for_somebody_to_say_what_became_of_it(lead: Client) -> None:
    proposal, store = proposed(on_lost="hold"), get_store()
    proposal_rows.decide(store, "approved", proposal.id, proposal.scope)
    store.claim_proposal(proposal.scope, proposal.id, 1, "worker-1")
    while store.claim_proposal(proposal.scope, proposal.id, 1, "worker-2").proposal is None or (
        (execution := stands(proposal).execution) is not None and execution.status == "executing"
    ):
        pass  # until the lease of a millisecond is over
    assert "nobody knows whether it was done" in text(lead, f"{INBOX}{proposal.id}/")
    assert "How you know" in text(lead, INBOX)
    refused = post(lead, "succeeded", proposal.id, proposal.digest, card=True)
    assert (refused.status_code, "say how you know" in refused.content.decode()) == (409, True)
    post(lead, "succeeded", proposal.id, proposal.digest, reason="The bank says so.")
    execution = stands(proposal).execution
    assert execution is not None
    assert (execution.status, execution.settled_by[0].reason) == ("succeeded", "The bank says so.")
    assert "Nothing is waiting" in text(lead, INBOX)


def test_the_api_lists_decides_and_refuses_with_the_codes_of_the_chat(lead: Client, staff: SignIn) -> None:
    proposal, call = proposed(), waits(expires_at=timezone.now() - timedelta(seconds=1))
    listed = lead.get(API).json()
    assert [(row["kind"], row["decidable"]) for row in listed] == [("proposal", True), ("approval", True)]
    assert lead.get(f"{API}-page").json()["total"] == 2

    def decide(subject: str, **body: object) -> tuple[int, str | None]:
        answer = lead.post(f"{API}/{subject}", json.dumps(body), content_type="application/json")
        return answer.status_code, (answer.json() or {}).get("code") if answer.content else None

    assert decide(proposal.id, approved="yes")[0] == 400
    assert decide(proposal.id, approved=True, digest="0" * 64) == (409, "card_changed")
    assert decide(proposal.id, approved=True, digest=proposal.digest) == (204, None)
    assert decide(proposal.id, approved=True) == (204, None)
    assert decide(proposal.id, approved=False) == (409, "already_decided")
    assert decide(call, approved=True) == (410, "approval_expired")
    assert decide("proposal-none", approved=True) == (404, "not_found")
    audit = stands(proposal).audit
    assert audit is not None
    assert audit.via == "api"
    answer = staff(SEES).post(f"{API}/{proposal.id}", "{}", content_type="application/json")
    assert answer.status_code == 403


def test_the_inbox_asks_the_same_number_of_statements_however_much_waits(lead: Client) -> None:
    proposed("0", approver="shop.view_order")
    waits("call-0")
    lead.get(INBOX)
    with count_queries() as few:
        lead.get(INBOX, {"who": "all"})
    for number in range(1, 12):
        proposed(str(number), actor=Actor(f"person{number}"), approver="shop.view_order")
        waits(f"call-{number}", actor=Actor(f"person{number}"))
    with count_queries() as more:
        lead.get(INBOX, {"who": "all"})
    assert more() == few()


def test_the_oldest_comes_first_across_both_kinds(lead: Client) -> None:
    now = epoch_ms(timezone.now())
    call, proposal = waits(), proposed(expires_at=now + 600_000)
    ToolCall.objects.filter(pk=call).update(created_at=timezone.now() - timedelta(hours=2, minutes=10))
    page = html(lead, INBOX)
    assert page.index(call) < page.index(f'data-gov-card="{proposal.id}"')
    assert "oldest 2 h 10 min the next runs out in 9 min" in text(lead, INBOX)


@pytest.mark.parametrize("asked", [{"who": "zzz"}, {"tab": "zzz"}, {"page": "0"}, {"cursor": "abc"}, {"zzz": "1"}])
def test_what_the_address_asks_in_vain_is_said(lead: Client, asked: dict[str, str]) -> None:
    proposed()
    assert next(iter(asked)) in text(lead, INBOX, status=400, **asked)


def _all() -> Selection:
    return Selection.of(DayRange.of(None, None))
