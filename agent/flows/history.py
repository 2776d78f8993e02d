"""What a turn carries of its thread: read within bounds, repaired, chosen by the policy (spec 04 §5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.domain.clock import wire_time
from agent.domain.history import (
    HistoryPolicy,
    HistoryPolicyContext,
    HistorySelection,
    fingerprint_of,
    folds_up_to,
    select_history,
    summarizes,
)
from agent.domain.snapshots import StoredSummary, ThreadPage, TurnMessage
from agent.flows.journal import Unit
from agent.flows.pages import CHUNK, read_bounded
from agent.store.base import AgentStore

OPTIONAL = (
    ("agentName", "agent_name"),
    ("toolCalls", "tool_calls"),
    ("toolResults", "tool_results"),
    ("attachments", "attachments"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a recorded `load:thread` gives the turn; `dropped` is what is new to fold into the summary."""

    title: str
    approval_mode: str  # of the project and the agent
    messages: tuple[TurnMessage, ...]
    dropped: tuple[TurnMessage, ...] = ()
    summary: str | None = None  # the stored one that the run starts from
    answered: bool = False  # an agent has spoken in the thread before
    covered: int = 0  # the number up to which that one stands for the thread
    folds_up_to: int = 0  # the number up to which a new one will


def load_step(
    unit: Unit, store: AgentStore, policy: HistoryPolicy, context: HistoryPolicyContext, *, approval_mode: str
) -> Carried:
    """The step `load:thread`.

    Runs from before the marker recorded the whole thread, and choose among it outside of the step.
    """
    if unit.patched("agent:selected-history"):
        return _carried(unit.write("load:thread", load, store, policy, context, approval_mode=approval_mode))
    payload = unit.write("load:thread", load_whole, store, context)
    messages = messages_of(payload["messages"])
    selection = select_history(policy, messages, context)
    dropped = selection.drop if summarizes(policy) else ()
    up_to = folds_up_to(messages, selection, 0)
    return Carried(
        title=payload["title"],
        approval_mode=approval_mode,
        messages=selection.keep,
        dropped=dropped,
        answered=payload["hasAssistantMessage"],
        folds_up_to=up_to,
    )


def load(
    store: AgentStore,
    policy: HistoryPolicy,
    context: HistoryPolicyContext,
    *,
    approval_mode: str = "blocking",
    chunk: int = CHUNK,
) -> dict[str, Any]:
    """The payload of `load:thread`: what is kept, what is new to fold, and what is true of the whole thread."""
    stored = _stored_summary(store, policy, context.thread_id)
    watermark = None if stored is None else stored.up_to_seq
    page = read_bounded(store, policy, context.thread_id, watermark=watermark, chunk=chunk)
    selection = select_history(policy, page.messages, context)
    payload = {**_payload(page, selection.keep), "approvalMode": approval_mode}
    return payload | _folding(page, selection, stored) if summarizes(policy) else payload


def load_whole(store: AgentStore, context: HistoryPolicyContext) -> dict[str, Any]:
    """The payload of runs that were recorded before `agent:selected-history`: the whole thread."""
    page = read_bounded(store, _Everything(), context.thread_id)
    return _payload(page, page.messages)


class _Everything:
    """The policy of those who choose later."""

    def select(self, messages: Sequence[TurnMessage], context: HistoryPolicyContext) -> HistorySelection:
        return HistorySelection(keep=tuple(messages))


def _stored_summary(store: AgentStore, policy: HistoryPolicy, thread_id: str) -> StoredSummary | None:
    if not summarizes(policy) or "summaries" not in store.capabilities:
        return None
    return store.thread_summary(thread_id, fingerprint_of(policy))


def _folding(page: ThreadPage, selection: HistorySelection, stored: StoredSummary | None) -> dict[str, Any]:
    """What is dropped and in no summary yet, and the summary that stands for the rest of what is dropped."""
    told: dict[str, Any] = {}
    floor = 0 if stored is None else stored.up_to_seq
    dropped = sorted((message for message in selection.drop if message.seq > floor), key=lambda message: message.seq)
    if dropped:
        told["dropped"] = [_to_json(message) for message in dropped]
        reached = folds_up_to(page.messages, selection, floor)
        if reached != dropped[-1].seq:  # the policy tells some older message nowhere
            told["foldsUpToSeq"] = reached
    if stored is not None and (page.has_more or len(selection.keep) < len(page.messages)):
        told["summary"] = {"text": stored.text, "upToSeq": stored.up_to_seq}
    return told


def _carried(payload: dict[str, Any]) -> Carried:
    summary = payload.get("summary") or {"text": None, "upToSeq": 0}
    dropped = messages_of(payload.get("dropped", ()))
    return Carried(
        title=payload["title"],
        approval_mode=payload["approvalMode"],
        messages=messages_of(payload["messages"]),
        dropped=dropped,
        summary=summary["text"],
        answered=payload["hasAssistantMessage"],
        covered=summary["upToSeq"],
        folds_up_to=payload.get("foldsUpToSeq", dropped[-1].seq if dropped else 0),
    )


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


def messages_of(items: Sequence[dict[str, Any]]) -> tuple[TurnMessage, ...]:
    return tuple(_from_json(item) for item in items)


def _from_json(item: dict[str, Any]) -> TurnMessage:
    return TurnMessage(
        id=item["id"],
        seq=item["seq"],
        role=item["role"],
        content=item["content"],
        created_at=datetime.fromisoformat(item["createdAt"]),
        **{field: item[name] for name, field in OPTIONAL if name in item},
    )
