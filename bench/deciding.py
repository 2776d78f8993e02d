"""Proposals that somebody approves, and the worker that carries them out, in one process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage
from agent.domain.ids import new_id
from agent.domain.proposals import NewProposal, ProposalScope, proposal_id
from agent.flows import execution, proposals
from agent.models import ActionProposal, Message
from agent.store import get_store
from bench import counting
from bench.turns import ACTOR

PATIENCE = 30.0
REST_SECONDS = 0.01  # between approvals: the worker is idle again

_lost = 0  # compare-and-sets of this process that somebody else had won


class Anybody:
    """Everybody is still there."""

    def resolve(self, ref: str, tenant_ref: str | None) -> Actor:
        return Actor(ref, tenant_ref=tenant_ref)


def watch() -> None:
    """Count what is lost, on every connection from now on."""
    connection_created.connect(_watched, weak=False, dispatch_uid="bench.deciding")


def waiting(count: int) -> list[str]:
    """So many proposals that nobody has decided, each in a conversation of its own."""
    return [_proposed() for _ in range(count)]


def approved(count: int) -> int:
    """So many that wait for a worker, with nobody told."""
    for each in waiting(count):
        proposals.approve(ACTOR, each)
    return count


def timed(count: int) -> list[float]:
    """Milliseconds from each approval until it is seen to be executed."""
    found = []
    for each in waiting(count):
        start = time.perf_counter()
        proposals.approve(ACTOR, each)
        _wait(lambda each=each: _is_over(each))  # type: ignore[misc]
        found.append((time.perf_counter() - start) * 1000)
        time.sleep(REST_SECONDS)
    return found


def worked() -> dict[str, Any]:
    """Carry out all that waits, as fast as it goes."""
    global _lost
    _lost = 0
    cpu, start = time.process_time(), time.perf_counter()
    done = asyncio.run(execution.work())
    seconds = time.perf_counter() - start
    return {"done": done, "seconds": seconds, "cpu": time.process_time() - cpu, "lost": _lost}


def counted() -> dict[str, Any]:
    """What it costs to carry one out."""
    approved(1)
    with counting.counted() as counts:
        assert asyncio.run(execution.execute_next())
    return {**counts.to_json(), "log": counts.log}


def check() -> int:
    """Everything was carried out and told, once each; how many."""
    left = ActionProposal.objects.exclude(execution_status="succeeded", delivery_status="delivered").count()
    assert left == 0, f"{left} were not carried out or not told"
    done = ActionProposal.objects.count()
    assert Message.objects.exclude(action_proposal_outcome=None).count() == done, "an outcome each"
    return done


def _proposed() -> str:
    store = get_store()
    thread, run_id = store.create_thread(actor=ACTOR), new_id()
    store.append_message(AppendMessage(thread_id=thread.id, role="user", content="pay order 1042 back"))
    asked = NewProposal(
        id=proposal_id(run_id, "call-1"),
        scope=ProposalScope(tenant_ref=ACTOR.tenant_ref, actor_ref=ACTOR.ref, thread_id=thread.id),
        origin_run_id=run_id,
        origin_message_id=new_id(),
        origin_tool_call_id="call-1",
        tool_name="pay_back",
        input={"number": 1042},
        preparation_input={"number": 1042},
        execution_context={"requestId": run_id, "agentName": "acting"},
        confirmation={"title": "Pay back", "verb": "Pay"},
        approver="requester",
        idempotency_key=f"{run_id}:call-1",
    )
    assert store.create_proposal(asked).applied
    return asked.id


def _is_over(proposal: str) -> bool:
    found = get_store().find_proposal(proposal)
    return found is not None and found.outcome is not None


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "nobody carried it out"
        time.sleep(0.001)


def _watched(connection: BaseDatabaseWrapper, **_: object) -> None:
    if _noted not in connection.execute_wrappers:
        connection.execute_wrappers.append(_noted)


def _noted(execute: Callable[..., Any], sql: str, params: object, many: bool, context: dict[str, Any]) -> Any:
    global _lost
    answer = execute(sql, params, many, context)
    if sql.startswith("UPDATE") and "agent_action_proposal" in sql:
        _lost += context["cursor"].rowcount == 0
    return answer
