"""A site whose agent refunds orders by proposals, and what tests do with them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent.db import close_threads
from agent.domain.actor import Actor
from agent.domain.model_calls import ModelRequest
from agent.domain.proposals import Proposal
from agent.domain.runs import Run
from agent.flows import execution, proposals
from agent.providers.scripted import ScriptedReply, call
from agent.registry import Presentation, ToolContext, agent, tool
from tests.flows.conftest import ALICE, Site

LEAD = Actor("lead", ("lead",))
SETTINGS = {"BACKGROUND_ACTOR_RESOLVER": "tests.flows.proposing.Anybody", "DEFAULT_AGENT": "desk"}


class Anybody:
    """Everybody is still there, as who they were."""

    def resolve(self, ref: str, tenant_ref: str | None) -> Actor | None:
        return None if ref == "gone" else Actor(ref, ("today",), tenant_ref)


@dataclass
class Desk:
    """The refunds that were really made, by their idempotency keys."""

    site: Site
    refunds: list[tuple[str, int]] = field(default_factory=list)
    seen: list[ToolContext] = field(default_factory=list)
    fails_with: Exception | None = None
    holds: threading.Event | None = None  # a refund waits for it

    def asked(self, message: str = "refund order 1042", **fields: Any) -> tuple[Run, Proposal]:
        """A turn that ends with a proposal."""
        run = self.site.turn(message, **fields)
        [found] = [one for one in proposals.page(run.actor, run.thread_id).items if one.asked.origin_run_id == run.id]
        return run, found

    def again(self, proposal: Proposal) -> Proposal:
        stored = self.site.store.find_proposal(proposal.id)
        assert stored is not None
        return stored

    def work(self) -> int:
        return int(run_async(execution.work))

    def told(self, run: Run) -> list[str]:
        return [message.content for message in self.site.messages(run.thread_id) if message.action_proposal_outcome]


def run_async(call: Callable[..., Any], *args: object) -> Any:
    try:
        return asyncio.run(call(*args))
    finally:
        close_threads()


def scripted(request: ModelRequest) -> ScriptedReply:
    """A refund of the order that the question ends with: one call a word `and`."""
    asked = next(message.content for message in reversed(request.messages) if message.role == "user")
    orders = [part.split()[-1] for part in asked.split(" and ")]
    return ScriptedReply(calls=[call("refund_order", order=order, cents=500) for order in orders])


def declare(desk: Desk, *, cents_type: type = int, **options: Any) -> None:
    given: dict[str, Any] = {"kind": "action", "approver": "role:lead", "approval_mode": "independent", **options}

    def refund_order(ctx: ToolContext, order: int, cents: int) -> dict[str, int]:
        """Pay an order back."""
        desk.seen.append(ctx)
        if desk.holds is not None:
            desk.holds.wait(20)
        if desk.fails_with is not None:
            raise desk.fails_with
        if (ctx.idempotency_key, order) not in desk.refunds:
            desk.refunds.append((ctx.idempotency_key, order))
        return {"order": order, "cents": cents}

    refund_order.__annotations__["cents"] = cents_type
    tool(present=lambda given, output: Presentation(text="Refunded."), **given)(refund_order)

    @agent(name="desk", prompt="You help.", tools=[refund_order])
    class DeskAgent: ...


__all__ = ["ALICE", "LEAD", "SETTINGS", "Desk", "declare", "run_async", "scripted"]
