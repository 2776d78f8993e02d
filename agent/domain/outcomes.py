"""What a thread is told of an action that came to its end outside of a turn (spec 07 §11): no model is asked."""

from __future__ import annotations

import json

from agent.domain.commands import UNSET, AppendMessage
from agent.domain.proposals import Outcome, Proposal
from agent.domain.states import MessageRole
from agent.domain.text import escaped, is_exact

ID_MAX = 64
NAME_MAX = 128
_NOT_DONE = {
    "rejected": "Rejected: {title} was not carried out.",
    "expired": "Expired: nobody approved {title} in time, and it was not carried out.",
}


def outcome_message(proposal: Proposal) -> AppendMessage:
    """The message: the tool's own words first, then one factual line."""
    outcome, asked = proposal.outcome, proposal.asked
    assert outcome is not None
    parts = [outcome.text, _fact(outcome, _title(proposal))]
    agent = asked.execution_context.get("agentName")
    return AppendMessage(
        thread_id=asked.scope.thread_id,
        role=MessageRole.ASSISTANT,
        content=escaped("\n\n".join(part for part in parts if part)),
        agent_name=None if agent is None else escaped(agent)[:NAME_MAX],
        run_id=asked.origin_run_id if is_exact(asked.origin_run_id) and len(asked.origin_run_id) <= ID_MAX else None,
        ui=outcome.ui,
        action_proposal_outcome={
            "proposalId": asked.id,
            "outcomeId": outcome.id,
            "status": outcome.status,
            "toolName": asked.tool_name,
            "toolCallId": asked.origin_tool_call_id,
        },
    )


def _title(proposal: Proposal) -> str:
    title = (proposal.asked.confirmation or {}).get("title")
    return title if isinstance(title, str) and title.strip() else proposal.asked.tool_name


def _fact(outcome: Outcome, title: str) -> str:
    if outcome.status == "succeeded":
        told = "" if outcome.result is UNSET else f" Result: {json.dumps(outcome.result, ensure_ascii=False)}"
        return f"Completed: {title}.{told}"
    if outcome.status == "failed":
        return f"Failed: {title}. {outcome.error}"
    reason = f" Reason: {outcome.reason}" if outcome.reason else ""
    return f"{_NOT_DONE[outcome.status].format(title=title)}{reason}"
