"""ROUND_TRIP_CONTRACT (spec 02 §5.1): what was written is what is read, every field of it."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from decimal import Decimal

from agent.domain.actor import Actor
from agent.domain.commands import (
    AppendMessage,
    NewRun,
    RecordToolCall,
    RecordUsage,
    ThreadPatch,
    ToolCallPatch,
    ToolDecision,
)
from agent.domain.snapshots import Message
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import ANA, EVERY_MESSAGE_FIELD, new_thread, price, say, stored_run
from agent.testing.contracts.store import START, StoreCase, StoreSubject, case

ROUND_TRIP_CONTRACT: list[StoreCase] = []
FEEDBACK = {"value": "up", "comment": "thanks", "updatedAt": "2026-03-01T12:00:00.000Z"}


def full_message(subject: StoreSubject, thread_id: str) -> Message:
    message = subject.store.append_message(
        AppendMessage(thread_id=thread_id, role="assistant", content="Found it.", id="msg-1", **EVERY_MESSAGE_FIELD)
    )
    if "feedback" not in subject.store.capabilities:
        return message
    subject.store.set_message_feedback(message.id, FEEDBACK)
    return replace(message, feedback=FEEDBACK)


def messages_of(subject: StoreSubject, thread_id: str) -> list[Message]:
    detail = subject.store.get_thread(thread_id)
    if detail is None:
        raise ContractMismatch("the thread is gone")
    return list(detail.messages)


@case(ROUND_TRIP_CONTRACT, "01 a message with every optional field reads back equal")
def _every_field(subject: StoreSubject) -> None:
    thread_id = new_thread(subject.store)
    message = full_message(subject, thread_id)
    for name, value in EVERY_MESSAGE_FIELD.items():
        same(getattr(message, name), value, f"{name} of the answer")
    same(messages_of(subject, thread_id), [message], "get_thread")
    same(subject.store.messages_of_run(thread_id, "run-1"), [message], "messages_of_run")
    expect(message.created_at == START and message.seq == 1 and message.thread_id == thread_id, "what the store gave")


@case(ROUND_TRIP_CONTRACT, "02 a message with none of them reads back with all absent")
def _no_field(subject: StoreSubject) -> None:
    thread_id = new_thread(subject.store)
    say(subject.store, thread_id, "hello")
    subject.store.append_message(
        AppendMessage(
            thread_id=thread_id,
            role="user",
            content="empty lists",
            tool_calls=[],
            tool_results=[],
            attachments=[],
            follow_ups=[],
            ui=[],
        )
    )
    for message in messages_of(subject, thread_id):
        absent = {name: getattr(message, name) for name in [*EVERY_MESSAGE_FIELD, "feedback", "approvals"]}
        same(absent, dict.fromkeys(absent), f"absent fields of {message.content!r}")


@case(
    ROUND_TRIP_CONTRACT, "03a every field of a thread reads back equal", needs=("default_agent_reader", "thread_patch")
)
def _thread(subject: StoreSubject) -> None:
    store = subject.store
    made = store.create_thread(
        actor=ANA,
        title="Order 1042",
        transient=True,
        agent_name="support",
        persona="kind",
        external_id="ext-1",
        active_run_id="run-1",
    )
    patched = store.update_thread(made.id, ThreadPatch(model="fast"))
    wanted = {
        "id": made.id,
        "actor_ref": "ana",
        "tenant_ref": "acme",
        "title": "Order 1042",
        "transient": True,
        "default_agent": "support",
        "model": "fast",
        "persona": "kind",
        "external_id": "ext-1",
        "active_run_id": "run-1",
        "last_message_preview": "",
        "created_at": START,
        "updated_at": START,
    }
    same(patched, wanted, "the answer")
    detail = store.get_thread(made.id)
    same(detail and detail.summary, wanted, "get_thread")
    scope = store.thread_scope(made.id)
    same(scope and (scope.default_agent, scope.model, scope.persona), ("support", "fast", "kind"), "thread_scope")
    pins = store.default_agent_for_thread, store.model_for_thread, store.persona_for_thread
    same([read(made.id) for read in pins], ["support", "fast", "kind"], "one column each")


@case(ROUND_TRIP_CONTRACT, "03b every field of a run reads back equal", needs=("runs",))
def _run(subject: StoreSubject) -> None:
    run = NewRun(
        id="run-1",
        thread_id="thread-1",
        actor=Actor("ana", ("b", "a"), ""),
        input={"z": 1, "a": None, "text": "\x00"},
        agent_name="support",
        model_id="fast",
        persona="kind",
        trigger="delegate",
        parent_run_id="run-0",
        parent_call_id="call-0",
        stream_run_id="run-0",
        depth=2,
        dispatched=True,
    )
    made = subject.store.create_run(run)
    for field in fields(run):
        if field.name != "dispatched":
            same(getattr(made, field.name), getattr(run, field.name), field.name)
    expect(made.dispatched_at == made.created_at == START, "its times")
    expect(made.status == "queued" and made.attempt == made.active_ms == made.frame_base == 0, "its beginning")
    expect(list(made.input) == ["z", "a", "text"], "the order of keys")
    same(stored_run(subject.store), made, "get_run")


@case(ROUND_TRIP_CONTRACT, "03c every field of a tool call reads back equal")
def _tool_call(subject: StoreSubject) -> None:
    store = subject.store
    message = say(store, new_thread(store), role="assistant", run_id="run-1")
    call = RecordToolCall(
        id="call-1",
        provider_call_id="toolu_1",
        message_id=message.id,
        thread_id=message.thread_id,
        run_id="run-1",
        actor_ref="ana",
        tenant_ref="acme",
        agent_name="support",
        tool_name="cancel_order",
        tool_type="action",
        input={"z": 1, "a": 2},
        status="pending_approval",
        approver="shop.cancel",
        four_eyes=True,
        confirmation={"title": "Cancel?", "verb": "Cancel"},
        expires_at=START + timedelta(hours=1),
        parent_call_id="call-0",
    )
    store.record_tool_call(call)
    store.decide_tool_call("call-1", ToolDecision(decision="approved", actor=Actor("lead"), via="admin", reason="ok"))
    patch = ToolCallPatch(status="executed", output={"done": True}, execution_ms=12, answers={"q": ["a"]})
    store.update_tool_call("call-1", patch)
    stored = store.get_tool_call("call-1")
    if stored is None:
        raise ContractMismatch("the call is gone")
    given = {field.name: getattr(call, field.name) for field in fields(call)}
    later = {
        "status": "executed",
        "output": {"done": True},
        "execution_ms": 12,
        "answers": {"q": ["a"]},
        "decision": "approved",
        "decided_at": START,
        "decided_via": "admin",
        "decision_reason": "ok",
        "executed_by_ref": "lead",
        "remember": False,
        "origin_call_id": None,
        "created_at": START,
        "executed_at": START,
        "settled_at": START,
    }
    same(stored, {**given, **later}, "get_tool_call")
    same(store.tool_call_input("call-1"), {"z": 1, "a": 2}, "tool_call_input")


@case(ROUND_TRIP_CONTRACT, "03d every field of a usage row and of a price reads back equal")
def _usage(subject: StoreSubject) -> None:
    store = subject.store
    new_price = replace(
        price(),
        cache_write_per_million_nanos=1,
        cache_read_per_million_nanos=2,
        cache_write_1h_per_million_nanos=3,
        tiers=[{"aboveInputTokens": 10**6, "inputPerMillionNanos": 5, "outputPerMillionNanos": 6}],
        effective_from=START - timedelta(days=1),
        created_by_ref="finance",
        note="from the list\x00",
    )
    kept = store.supersede_price(new_price)
    given = {field.name: getattr(new_price, field.name) for field in fields(new_price)}
    same(kept, {**given, "note": "from the list\ufffd", "id": kept.id, "created_at": START}, "the price")
    same(store.price_history("m"), [kept], "price_history")
    usage = RecordUsage(
        thread_id="thread-1",
        actor_ref="ana",
        model_id="m",
        purpose="chat",
        run_id="run-1",
        message_id="msg-1",
        tenant_ref="acme",
        agent_name="support",
        step_key="llm:0",
        input_tokens=2_000,
        output_tokens=0,
        cache_write_tokens=0,
        cache_read_tokens=1,
        cache_write_1h_tokens=0,
        tokens_source="estimated",
        reported_cost_usd=Decimal("0.5"),
    )
    entry = store.record_usage(usage)
    names = [field.name for field in fields(usage) if field.name != "reported_cost_usd"]
    costs = {
        "reported_cost_nanos": 500_000_000,
        "estimated_cost_nanos": 1_999_000,
        "cost_nanos": 500_000_000,
        "price_id": kept.id,
    }
    wanted = {**{name: getattr(usage, name) for name in names}, **costs, "id": entry.id, "created_at": START}
    same(entry, wanted, "the answer")
    same(store.usage_of_run("run-1"), [entry], "usage_of_run")
