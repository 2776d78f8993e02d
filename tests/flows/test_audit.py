"""Who decided, how, when by the server's clock, and why: kept for every channel, of calls and of proposals alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.domain.clock import epoch_ms
from agent.flows import approvals, execution, proposals, recovery
from agent.registry import isolated_registry
from tests.flows.acting import LEAD, Acting, calls_of, cancel_call
from tests.flows.conftest import Site
from tests.flows.proposing import SETTINGS, Desk, declare, run_async, scripted

MakeSite = Callable[..., Site]
THEN = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)

# What is done, and what is kept: decision, decider, channel, reason.
BY_CALL: dict[str, tuple[Callable[[str], object], tuple[Any, ...]]] = {
    "approved on the page": (lambda one: approvals.approve(LEAD, one), ("approved", "lead", "web", None)),
    "approved elsewhere": (lambda one: approvals.approve(LEAD, one, via="api"), ("approved", "lead", "api", None)),
    "approved in a host's channel": (
        lambda one: approvals.approve(LEAD, one, via="pager 7"), ("approved", "lead", "pager 7", None),
    ),
    "approved in the console": (
        lambda one: approvals.approve(LEAD, one, via="admin"), ("approved", "lead", "admin", None),
    ),
    "rejected with a reason": (
        lambda one: approvals.reject(LEAD, one, reason="Not this year."),
        ("rejected", "lead", "web", "Not this year."),
    ),
    "rejected without one": (lambda one: approvals.reject(LEAD, one), ("rejected", "lead", "web", None)),
    "a long reason": (
        lambda one: approvals.reject(LEAD, one, reason="x" * 4096), ("rejected", "lead", "web", "x" * 4096),
    ),
    "nobody in time": (lambda _: recovery.recover(), ("expired", None, "expiry", None)),
}  # fmt: skip


@pytest.mark.parametrize(("act", "kept"), BY_CALL.values(), ids=BY_CALL)
def test_of_a_call(site: MakeSite, act: Callable[[str], object], kept: tuple[Any, ...]) -> None:
    acting = Acting(site)
    acting.declare(approver="lead")
    desk = acting.site(cancel_call(), APPROVAL_TTL_SECONDS=60)
    desk.store.clock = lambda: THEN
    run = desk.turn("Cancel it.")
    (call,) = calls_of(desk, run.thread_id)
    at = THEN + timedelta(seconds=60 if kept[2] == "expiry" else 59)
    desk.store.clock = lambda: at
    act(call.id)
    row = desk.store.get_tool_call(call.id)
    assert row is not None
    decided_by = None if kept[2] == "expiry" else row.executed_by_ref
    assert (row.decision, decided_by, row.decided_via, row.decision_reason) == kept
    assert row.decided_at == at
    desk.store.clock = lambda: at + timedelta(hours=1)
    desk.drive(run.id)
    (later,) = calls_of(desk, run.thread_id)
    assert (later.decision, later.decided_via, later.decided_at) == (row.decision, row.decided_via, row.decided_at)


@pytest.fixture
def desk(site: MakeSite) -> Iterator[Desk]:
    with isolated_registry():
        made = Desk(site=site(scripted, **SETTINGS, APPROVAL_TTL_SECONDS=60))
        declare(made)
        yield made


BY_PROPOSAL: dict[str, tuple[Callable[[Desk, str], object], tuple[Any, ...]]] = {
    "approved": (lambda desk, one: proposals.approve(LEAD, one), ("approved", "lead", "web", None)),
    "remembered": (lambda desk, one: proposals.approve(LEAD, one, remember=True), ("approved", "lead", "web", None)),
    "rejected": (
        lambda desk, one: proposals.reject(LEAD, one, reason="No.", via="api"), ("rejected", "lead", "api", "No."),
    ),
    "nobody in time": (lambda desk, one: run_async(execution.sweep), ("expired", "system", "expiry", None)),
}  # fmt: skip


@pytest.mark.parametrize(("act", "kept"), BY_PROPOSAL.values(), ids=BY_PROPOSAL)
def test_of_a_proposal(desk: Desk, act: Callable[[Desk, str], object], kept: tuple[Any, ...]) -> None:
    desk.site.store.clock = lambda: THEN
    run, proposal = desk.asked()
    calls = len(desk.site.provider.requests)
    at = THEN + timedelta(seconds=60 if kept[2] == "expiry" else 59)
    desk.site.store.clock = lambda: at
    act(desk, proposal.id)
    audit = desk.again(proposal).audit
    assert audit is not None
    assert (desk.again(proposal).decision, audit.actor_ref, audit.via, audit.reason) == kept
    assert audit.at == epoch_ms(at)
    desk.work()
    assert desk.again(proposal).audit == audit
    assert len(desk.told(run)) == 1
    assert len(desk.site.provider.requests) == calls  # no model was asked for it, nor does it cost anything
    assert [row.step_key for row in desk.site.store.usage_of_run(run.id)] == ["llm:0"]
