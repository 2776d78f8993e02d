"""Making a proposal of an action that a turn asks for (spec 07 §7, §8): in the commit of its tool call."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.domain.clock import epoch_ms
from agent.domain.model_calls import Json
from agent.domain.proposals import Answer, NewProposal, ProposalScope, proposal_id
from agent.domain.runs import Run
from agent.flows.preflight import Card
from agent.registry import ToolDefinition
from agent.store.base import AgentStore

UNDER_WAY = "Such an action is approved already and under way. Nothing was done; do not ask for it again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call as its run asks for it: the arguments as the model wrote them, and as they were understood."""

    run: Run
    message_id: str
    call_id: str
    raw: Json
    input: Json


def propose(
    store: AgentStore, request: Request, tool: ToolDefinition, card: Card, deadline: datetime | None
) -> str | None:
    """The id of the proposal; None where an approved one of its group is under way. A replay makes no second one."""
    asked = _asked(request, tool, card, deadline)
    answer = store.create_proposal(asked, supersede=asked.replacement_key is not None)
    return asked.id if answer.status in {Answer.APPLIED, Answer.UNCHANGED} else None


def _asked(request: Request, tool: ToolDefinition, card: Card, deadline: datetime | None) -> NewProposal:
    run, requirement = request.run, card.requirement
    return NewProposal(
        id=proposal_id(run.id, request.call_id),
        scope=ProposalScope(tenant_ref=run.actor.tenant_ref, actor_ref=run.actor.ref, thread_id=run.thread_id),
        origin_run_id=run.id,
        origin_message_id=request.message_id,
        origin_tool_call_id=request.call_id,
        tool_name=tool.name,
        input=request.input,
        preparation_input=request.raw,
        execution_context=_context(run),
        confirmation=dict(card.confirmation),
        approver=requirement.approver,
        four_eyes=requirement.four_eyes,
        on_lost=tool.on_lost,
        expires_at=None if deadline is None else epoch_ms(deadline),
        idempotency_key=f"{run.id}:{request.call_id}",
        replacement_key=card.replacement_key,
    )


def _context(run: Run) -> dict[str, Any]:
    """What an execution is told long after the turn; never who acts, which is looked up then."""
    told = {
        "requestId": run.input.get("requestId") or run.id,
        "agentName": run.agent_name,
        "persona": run.persona,
        "pageContext": run.input.get("pageContext"),
        "uiCapabilities": run.input.get("uiCapabilities"),
    }
    return {name: value for name, value in told.items() if value is not None}
