"""The exact shapes of answers: camelCase, absent values left out, instants in UTC with milliseconds."""

from __future__ import annotations

from typing import Any

from agent.domain.clock import wire_time
from agent.domain.snapshots import Message, ThreadDetail, ThreadSummary

Wire = dict[str, Any]


def summary(thread: ThreadSummary) -> Wire:
    """A thread in a list; the three pins are null when they are not set."""
    active = {"activeRunId": thread.active_run_id} if thread.active_run_id else {}
    return {
        "id": thread.id,
        "title": thread.title,
        "transient": thread.transient,
        "defaultAgent": thread.default_agent,
        "model": thread.model,
        "persona": thread.persona,
        **active,
        "lastMessagePreview": thread.last_message_preview,
        "createdAt": wire_time(thread.created_at),
        "updatedAt": wire_time(thread.updated_at),
    }


def detail(thread: ThreadDetail) -> Wire:
    """A thread with all that was said."""
    return {**summary(thread.summary), "messages": [message(one) for one in thread.messages]}


def message(stored: Message) -> Wire:
    """A message; what only the provider understands stays here."""
    shown = {
        "id": stored.id,
        "role": stored.role,
        "content": stored.content,
        "toolCalls": stored.tool_calls,
        "toolResults": stored.tool_results,
        "attachments": stored.attachments,
        "followUps": stored.follow_ups,
        "usage": stored.usage,
        "agentName": stored.agent_name,
        "persona": stored.persona,
        "runId": stored.run_id,
        "runStatus": stored.run_status,
        "reasoning": stored.reasoning,
        "reasoningMs": stored.reasoning_ms,
        "ui": stored.ui,
        "feedback": stored.feedback,
        "actionProposalOutcome": stored.action_proposal_outcome,
        "approvals": stored.approvals or None,
        "createdAt": wire_time(stored.created_at),
    }
    return {name: value for name, value in shown.items() if value is not None}
