"""What the cases are told with: two actors, and short ways to make the rows that a promise is about."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypedDict, Unpack

from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage, NewPrice, NewRun, RecordToolCall, RecordUsage, RunEnd
from agent.domain.runs import Run, RunLease
from agent.domain.snapshots import Json, JsonList, Message
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch

ANA = Actor("ana", ("staff", "support"), "acme")
BO = Actor("bo")


class EveryMessageField(TypedDict):
    """Each field of a message that may be absent, required here."""

    tool_calls: JsonList
    tool_results: JsonList
    attachments: JsonList
    follow_ups: list[str]
    usage: dict[str, Any]
    agent_name: str
    persona: str
    run_id: str
    reasoning: str
    reasoning_ms: int
    ui: JsonList
    provider_state: str
    action_proposal_outcome: dict[str, Any]


EVERY_MESSAGE_FIELD: EveryMessageField = {
    "tool_calls": [
        {"id": "call-1", "providerCallId": "toolu_1", "name": "find", "input": {"z": 1, "a": [None]}, "kind": "read"}
    ],
    "tool_results": [{"id": "call-1", "name": "find", "output": {"found": True}}],
    "attachments": [{"mediaId": "m1", "url": "/m/1", "contentType": "image/png", "name": "a b.png"}],
    "follow_ups": ["And then?", "Why?"],
    "usage": {"inputTokens": 12, "outputTokens": 3, "costUsd": 0.000012},
    "agent_name": "support",
    "persona": "kind",
    "run_id": "run-1",
    "reasoning": "It must be in the shop.",
    "reasoning_ms": 1200,
    "ui": [{"id": "u1", "component": "card", "props": {"call": "call-1", "n": 1.5}}],
    "provider_state": '{"provider": "x", "sig": "abc=="}',
    "action_proposal_outcome": {"proposalId": "p1", "outcomeId": "o1", "status": "succeeded"},
}


class MessageFields(TypedDict, total=False):
    id: str | None
    tool_calls: JsonList | None
    tool_results: JsonList | None
    ui: JsonList | None
    run_id: str | None


class CallFields(TypedDict, total=False):
    provider_call_id: str
    run_id: str | None
    tool_name: str
    status: str
    input: Json
    output: Json
    approver: str | None
    four_eyes: bool
    confirmation: dict[str, Any] | None
    expires_at: datetime | None
    proposal_id: str | None
    decision: str | None
    decided_via: str | None


class UsageFields(TypedDict, total=False):
    run_id: str | None
    step_key: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reported_cost_usd: Any


def new_thread(store: AgentStore, actor: Actor = ANA, *, held_by: str | None = None) -> str:
    return store.create_thread(actor=actor, active_run_id=held_by).id


def say(
    store: AgentStore, thread_id: str, content: str = "hello", *, role: str = "user", **more: Unpack[MessageFields]
) -> Message:
    return store.append_message(AppendMessage(thread_id=thread_id, role=role, content=content, **more))


def answer(store: AgentStore, thread_id: str, content: str = "yes", **more: Unpack[MessageFields]) -> Message:
    return say(store, thread_id, content, role="assistant", **more)


def called_message(store: AgentStore, run_id: str | None = "run-1", *, held_by: str | None = None) -> Message:
    """An assistant message in a thread of its own, for calls to belong to."""
    return answer(store, new_thread(store, held_by=held_by), run_id=run_id)


def new_call(store: AgentStore, message: Message, call_id: str = "call-1", **more: Unpack[CallFields]) -> str:
    """A running read, unless the fields say otherwise."""
    fields: CallFields = {
        "provider_call_id": f"toolu-{call_id}",
        "run_id": message.run_id,
        "tool_name": "find",
        "input": {"n": 1},
        "status": "running",
    }
    fields.update(more)
    return store.record_tool_call(
        RecordToolCall(
            id=call_id,
            message_id=message.id,
            thread_id=message.thread_id,
            actor_ref=ANA.ref,
            tenant_ref=ANA.tenant_ref,
            agent_name="support",
            tool_type="action" if "approver" in more else "read",
            **fields,
        )
    )


def waiting_call(store: AgentStore, message: Message, call_id: str = "call-1", **more: Unpack[CallFields]) -> str:
    """A call that waits for a person."""
    fields: CallFields = {"status": "pending_approval", "approver": "requester"}
    fields.update(more)
    return new_call(store, message, call_id, **fields)


def new_run(
    store: AgentStore,
    run_id: str = "run-1",
    *,
    thread_id: str = "thread-1",
    parent_run_id: str | None = None,
    parent_call_id: str | None = None,
) -> Run:
    return store.create_run(
        NewRun(
            id=run_id,
            thread_id=thread_id,
            actor=ANA,
            input={"messageId": "m1"},
            parent_run_id=parent_run_id,
            parent_call_id=parent_call_id,
        )
    )


def claimed(store: AgentStore, run_id: str = "run-1", *, owner: str = "w1", seconds: int = 60) -> RunLease:
    lease = store.claim_run(run_id, owner, seconds)
    if lease is None:
        raise ContractMismatch(f"the run {run_id} could not be claimed")
    return lease


def running(store: AgentStore, run_id: str = "run-1", *, thread_id: str = "thread-1") -> RunLease:
    """A new run and the lease of its first holder."""
    new_run(store, run_id, thread_id=thread_id)
    return claimed(store, run_id)


def stored_run(store: AgentStore, run_id: str = "run-1") -> Run:
    run = store.get_run(run_id)
    if run is None:
        raise ContractMismatch(f"the run {run_id} is gone")
    return run


def completed() -> RunEnd:
    return RunEnd(status="completed")


def usage(**more: Unpack[UsageFields]) -> RecordUsage:
    """A call of the model `m` by Ana."""
    fields: UsageFields = {"input_tokens": 1000, "output_tokens": 0}
    fields.update(more)
    return RecordUsage(
        thread_id="thread-1",
        actor_ref=ANA.ref,
        tenant_ref=ANA.tenant_ref,
        model_id="m",
        purpose="chat",
        **fields,
    )


def price(
    plain: int = 10**9, output: int = 4 * 10**9, *, effective_from: datetime | None = None, read: int | None = None
) -> NewPrice:
    """A price of the model `m`: a dollar per million tokens of input."""
    return NewPrice(
        model_id="m",
        input_per_million_nanos=plain,
        output_per_million_nanos=output,
        cache_read_per_million_nanos=read,
        effective_from=effective_from,
    )
