"""What a turn carries of its thread: read within bounds, repaired, chosen by the policy (spec 04 §5, §7)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agent.domain import transcript
from agent.domain.clock import wire_time
from agent.domain.history import HistoryPolicy, HistoryPolicyContext, Window, read_limit, select_history
from agent.domain.snapshots import ThreadDetail, ThreadPage, TurnMessage
from agent.errors import NotFound
from agent.flows.journal import Unit
from agent.store.base import AgentStore

CHUNK = 100  # how many messages a token window reads at once, newest first
OPTIONAL = (
    ("agentName", "agent_name"),
    ("toolCalls", "tool_calls"),
    ("toolResults", "tool_results"),
    ("attachments", "attachments"),
)


def load_step(
    unit: Unit, store: AgentStore, policy: HistoryPolicy, context: HistoryPolicyContext
) -> tuple[dict[str, Any], Sequence[TurnMessage]]:
    """The step `load:thread`: its payload, and the messages that the turn carries.

    Runs from before the marker recorded the whole thread, and choose among it outside of the step.
    """
    if unit.patched("agent:selected-history"):
        payload = unit.write("load:thread", load, store, policy, context)
        return payload, messages_of(payload)
    payload = unit.write("load:thread", load_whole, store, context)
    return payload, select_history(policy, messages_of(payload), context).keep


def load(store: AgentStore, policy: HistoryPolicy, context: HistoryPolicyContext) -> dict[str, Any]:
    """The payload of `load:thread`: what is kept, and what is true of the whole thread."""
    page = _read(store, policy, context.thread_id)
    kept = select_history(policy, _repaired(store, page.messages), context).keep
    return _payload(page, kept)


def load_whole(store: AgentStore, context: HistoryPolicyContext) -> dict[str, Any]:
    """The payload of runs that were recorded before `agent:selected-history`: the whole thread."""
    page = _page(store, context.thread_id, None)
    return _payload(page, _repaired(store, page.messages))


def messages_of(payload: dict[str, Any]) -> tuple[TurnMessage, ...]:
    """The messages of a recorded `load:thread`."""
    return tuple(_from_json(item) for item in payload["messages"])


def _read(store: AgentStore, policy: HistoryPolicy, thread_id: str) -> ThreadPage:
    limit = read_limit(policy)
    if limit is None and isinstance(policy, Window) and policy.max_tokens is not None:
        return _read_by_tokens(store, policy, thread_id)
    return _page(store, thread_id, limit)


def _read_by_tokens(store: AgentStore, window: Window, thread_id: str) -> ThreadPage:
    """Newest first in chunks until the estimates pass the budget: the same choice as on the whole thread."""
    page = _page(store, thread_id, CHUNK)
    messages = list(page.messages)
    estimated = sum(map(window.estimate, messages))
    more = page.has_more
    while more and estimated <= (window.max_tokens or 0):
        chunk = _page(store, thread_id, CHUNK, before_seq=messages[0].seq)
        messages[:0] = chunk.messages
        estimated += sum(map(window.estimate, chunk.messages))
        more = chunk.has_more
    return ThreadPage(
        title=page.title,
        default_agent=page.default_agent,
        has_assistant_message=page.has_assistant_message,
        has_more=more,
        messages=tuple(messages),
    )


def _page(store: AgentStore, thread_id: str, limit: int | None, before_seq: int | None = None) -> ThreadPage:
    """One bounded read; a store without `turn_reader` reads the thread whole and answers the same."""
    if "turn_reader" in store.capabilities:
        page = store.load_thread_for_turn(thread_id, message_limit=limit, before_seq=before_seq)
    else:
        detail = store.get_thread(thread_id)
        page = None if detail is None else page_of(detail, limit, before_seq)
    if page is None:
        raise NotFound
    return page


def page_of(detail: ThreadDetail, limit: int | None, before_seq: int | None = None) -> ThreadPage:
    """The page of a whole thread: what `load_thread_for_turn` would have answered."""
    told = [
        message
        for message in detail.messages
        if message.role != "assistant" or message.content.strip() or message.tool_calls
    ]
    below = [message for message in told if before_seq is None or message.seq < before_seq]
    kept = below if limit is None else below[max(0, len(below) - max(0, limit)) :]
    return ThreadPage(
        title=detail.summary.title,
        default_agent=detail.summary.default_agent,
        has_assistant_message=any(message.role == "assistant" for message in told),
        has_more=len(kept) < len(below),
        messages=tuple(
            TurnMessage(
                id=message.id,
                seq=message.seq,
                role=message.role,
                content=message.content,
                created_at=message.created_at,
                agent_name=message.agent_name,
                tool_calls=message.tool_calls,
                tool_results=message.tool_results,
                attachments=message.attachments,
            )
            for message in kept
        ),
    )


def _repaired(store: AgentStore, messages: Sequence[TurnMessage]) -> list[TurnMessage]:
    dangling = transcript.dangling_calls(messages)
    outcomes = store.tool_call_outcomes(dangling) if dangling else {}
    return transcript.repair(messages, outcomes)


def _payload(page: ThreadPage, kept: Sequence[TurnMessage]) -> dict[str, Any]:
    return {
        "messages": [_to_json(message) for message in kept],
        "title": page.title,
        "hasAssistantMessage": page.has_assistant_message,
    }


def _to_json(message: TurnMessage) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": message.id,
        "seq": message.seq,
        "role": message.role,
        "content": message.content,
        "createdAt": wire_time(message.created_at),
    }
    told.update((name, value) for name, field in OPTIONAL if (value := getattr(message, field)) is not None)
    return told


def _from_json(item: dict[str, Any]) -> TurnMessage:
    return TurnMessage(
        id=item["id"],
        seq=item["seq"],
        role=item["role"],
        content=item["content"],
        created_at=datetime.fromisoformat(item["createdAt"]),
        **{field: item[name] for name, field in OPTIONAL if name in item},
    )
