"""Whoever is to decide can be told: a signal when somebody is asked, and one when somebody has decided."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agent.flows import approvals, proposals
from tests.flows.acting import LEAD, Acting, calls_of, cancel_call
from tests.flows.conftest import Site
from tests.flows.proposing import SETTINGS, Desk, declare, scripted
from tests.flows.test_events import heard

ASKED, DECIDED = "approval.requested", "approval.decided"
MakeSite = Callable[..., Site]


def told(events: list[Any]) -> list[tuple[Any, ...]]:
    return [(one.event, one.payload.get("decision"), one.payload.get("via")) for one in events]


def test_a_call_is_asked_for_and_decided(site: MakeSite) -> None:
    acting = Acting(site)
    desk = acting.site(cancel_call(7), DEFAULT_AGENT="desk")
    acting.declare(approver="lead")
    with heard(ASKED, DECIDED) as events:
        run = desk.turn("Cancel 7")
        [card] = calls_of(desk, run.thread_id)
        approvals.approve(LEAD, card.id, via="console")
        approvals.approve(LEAD, card.id, via="again")
    assert told(events) == [(ASKED, None, None), (DECIDED, "approved", "console")]
    for one in events:
        assert (one.payload["toolCallId"], one.payload["toolName"]) == (card.id, "cancel")
        assert (one.payload["runId"], one.payload["proposalId"]) == (run.id, None)


def test_a_proposal_is_asked_for_and_decided(site: MakeSite) -> None:
    desk = Desk(site(scripted, **SETTINGS))
    declare(desk)
    with heard(ASKED, DECIDED) as events:
        run, proposal = desk.asked()
        proposals.reject(LEAD, proposal.id, reason="tell-nobody-42")
        proposals.reject(LEAD, proposal.id)
    assert told(events) == [(ASKED, None, None), (DECIDED, "rejected", "web")]
    assert {one.payload["proposalId"] for one in events} == {proposal.id}
    assert {one.payload["threadId"] for one in events} == {run.thread_id}
    assert "tell-nobody" not in str(events)


@pytest.mark.parametrize("late", ["approve", "reject"])
def test_a_decision_that_came_too_late_is_none(site: MakeSite, late: str) -> None:
    desk = Desk(site(scripted, APPROVAL_TTL_SECONDS=60, **SETTINGS))
    declare(desk)
    proposal = desk.asked()[1]
    begun = desk.site.store.clock()
    desk.site.store.clock = lambda: begun + timedelta(seconds=61)
    with heard(DECIDED) as events:
        assert getattr(proposals, late)(LEAD, proposal.id).status == "expired"
    assert events == []
