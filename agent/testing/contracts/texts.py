"""The cases of ROUND_TRIP_CONTRACT about odd text, copies and the fixture (spec 02 §5.1)."""

from __future__ import annotations

from dataclasses import fields, replace

from agent.domain.commands import ToolCallPatch
from agent.domain.snapshots import Message
from agent.errors import Invalid
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.round_trip import ROUND_TRIP_CONTRACT, full_message, messages_of
from agent.testing.contracts.rows import ANA, EVERY_MESSAGE_FIELD, new_call, new_thread, say
from agent.testing.contracts.store import StoreSubject, case

ODD = {"nul": "a\x00b", "lone": "\ud800", "emoji": "😀", "\x00": 1, "order": {"z": 1, "a": 2}}


@case(ROUND_TRIP_CONTRACT, "04 a fork keeps every message field but feedback")
def _fork(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    message = full_message(subject, thread_id)
    new_call(store, message, "call-1")
    fork = store.fork_thread(thread_id, message.id)
    [copy] = messages_of(subject, fork.id)
    [copied_call] = [item["id"] for item in copy.tool_calls or ()]
    renamed = replace(
        message,
        id=copy.id,
        thread_id=fork.id,
        feedback=None,
        tool_calls=[{**item, "id": copied_call} for item in message.tool_calls or ()],
        tool_results=[{**item, "id": copied_call} for item in message.tool_results or ()],
        ui=[{"id": "u1", "component": "card", "props": {"call": copied_call, "n": 1.5}}],
    )
    same(copy, renamed, "the copy")
    expect(copied_call != "call-1" and store.get_tool_call(copied_call) is not None, "the call of the copy")


@case(ROUND_TRIP_CONTRACT, "05 long and odd text is unchanged, NUL is shown in text and kept in JSON")
def _text(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    long = ("مرحبا \u202eabc\u202c 😀\n" * 100_000)[: 2**20]
    for content in (long, "a\x00b\ud800c", " \t\n"):
        say(store, thread_id, content)
    same([m.content for m in messages_of(subject, thread_id)], [long, "a\ufffdb\ufffdc", " \t\n"], "contents")
    message = say(store, thread_id, "  \n ", role="assistant")
    expect(message.content == "", "an assistant's white space is stored as ''")
    new_call(store, message, "call-1", run_id="run-1", input=ODD)
    store.update_tool_call("call-1", ToolCallPatch(output=ODD))
    call = store.get_tool_call("call-1")
    expect(call and call.input == ODD and call.output == ODD, "NUL and lone surrogates in input and output")
    expect(call and list(call.input["order"]) == ["z", "a"], "the order of keys in input")


@case(ROUND_TRIP_CONTRACT, "05b ids with NUL or too long are refused, and unknown when asked for", needs=("runs",))
def _ids(subject: StoreSubject) -> None:
    store = subject.store
    for odd in ("a\x00", "\ud800", "x" * 256):
        try:
            store.create_thread(actor=ANA, external_id=odd)
        except Invalid:
            pass
        else:
            raise ContractMismatch(f"external id {odd[:3]!r} was taken")
        same(store.get_thread(odd), None, "an unknown thread")
        same(store.get_run(odd), None, "an unknown run")
        same(store.tool_call_input(odd), None, "an unknown call")
    same(store.list_threads(ANA), [], "threads")


@case(ROUND_TRIP_CONTRACT, "06 every optional field of a message is in the fixture")
def _fixture(_: StoreSubject) -> None:
    given = {field.name for field in fields(Message)}
    structural = {"id", "thread_id", "seq", "role", "content", "created_at", "feedback", "approvals", "run_status"}
    same(given - structural, set(EVERY_MESSAGE_FIELD), "EVERY_MESSAGE_FIELD")
    expect(all(value is not None for value in EVERY_MESSAGE_FIELD.values()), "each has a value")


@case(
    ROUND_TRIP_CONTRACT,
    "08 what came out, and what went in, can be changed without changing what is stored",
    needs=("turn_reader",),
)
def _copies(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    results = [{"id": "call-1", "name": "find", "output": {"n": [1]}}]
    message = say(store, thread_id, role="assistant", tool_results=results)
    results[0]["output"] = "changed"
    (message.tool_results or [])[0]["output"]["n"].append(2)
    page = store.load_thread_for_turn(thread_id)
    (page.messages[0].tool_results or [])[0]["output"]["n"].append(3) if page else None
    stored = messages_of(subject, thread_id)[0].tool_results
    same(stored, [{"id": "call-1", "name": "find", "output": {"n": [1]}}], "tool results")
