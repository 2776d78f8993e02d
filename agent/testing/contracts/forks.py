"""The cases of THREAD_CONTRACT about forks (spec 02 §5.2, §4.12)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from agent.domain.commands import ThreadPatch, ToolCallPatch, ToolDecision
from agent.domain.snapshots import Message, ToolCall
from agent.errors import Invalid, NotFound
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import ANA, answer, new_call, new_thread, say, waiting_call
from agent.testing.contracts.store import START, StoreSubject, case
from agent.testing.contracts.threads import THREAD_CONTRACT, contents, listed


def _messages(store: AgentStore, thread_id: str) -> list[Message]:
    detail = store.get_thread(thread_id)
    if detail is None:
        raise ContractMismatch("the thread is gone")
    return list(detail.messages)


def _call(store: AgentStore, call_id: str) -> ToolCall:
    call = store.get_tool_call(call_id)
    if call is None:
        raise ContractMismatch(f"the call {call_id} is gone")
    return call


def _copied_call(store: AgentStore, message: Message) -> ToolCall:
    ids = [item["id"] for item in message.tool_calls or ()]
    same(len(ids), 1, "calls of the copy")
    return _call(store, ids[0])


def _refuses(error: type[Exception], write: Callable[[], object], what: str) -> None:
    try:
        write()
    except error:
        return
    raise ContractMismatch(f"{what} was not refused")


@case(THREAD_CONTRACT, "13 a fork is listed for the same owner with the source's title, tenant and pins")
def _listed(subject: StoreSubject) -> None:
    store = subject.store
    source = store.create_thread(
        actor=ANA, title="t", transient=True, external_id="x", active_run_id="run-1", agent_name="a", persona="p"
    )
    if "thread_patch" in store.capabilities:
        store.update_thread(source.id, ThreadPatch(model="m"))
    last = say(store, source.id, "hello")
    subject.clock.advance(5)
    fork = store.fork_thread(source.id, last.id)
    wanted = {
        "actor_ref": "ana",
        "tenant_ref": "acme",
        "title": "t",
        "transient": False,
        "default_agent": "a",
        "model": "m" if "thread_patch" in store.capabilities else None,
        "persona": "p",
        "external_id": None,
        "active_run_id": None,
        "last_message_preview": "hello",
        "created_at": subject.clock.now,
        "updated_at": subject.clock.now,
    }
    same(fork, {**wanted, "id": fork.id}, "the fork")
    same(store.list_threads(ANA), [fork], "list_threads")


@case(THREAD_CONTRACT, "14 a failure inside a fork leaves no thread behind", commits=True)
def _failure(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    new_call(store, answer(store, thread_id, run_id="run-1"), "call-1")
    good, given = store.new_id, []

    def runs_out() -> str:
        """The ids of the fork and of its message, then one that no table takes."""
        given.append("given")
        return good() if len(given) < 3 else "x" * 65

    store.new_id = runs_out
    _refuses(Invalid, lambda: store.fork_thread(thread_id, "all"), "an id that is too long")
    store.new_id = good
    same(len(given), 3, "ids given")
    same(listed(store), [thread_id], "threads")
    same(len(_messages(store, thread_id)), 1, "messages of the source")


@case(THREAD_CONTRACT, "18 a fork copies up to and including the named message; an unknown message copies all")
def _part(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    said = [say(store, thread_id, content) for content in ("a", "b", "c")]
    same(contents(store, store.fork_thread(thread_id, said[1].id).id), ["a", "b"], "up to b")
    same(contents(store, store.fork_thread(thread_id, "nobody").id), ["a", "b", "c"], "an unknown message")
    same(contents(store, store.fork_thread(new_thread(store), said[1].id).id), [], "an empty source")
    _refuses(NotFound, lambda: store.fork_thread("nobody", said[1].id), "an unknown source")
    store.soft_delete_thread(thread_id)
    _refuses(NotFound, lambda: store.fork_thread(thread_id, said[1].id), "a deleted source")


@case(THREAD_CONTRACT, "19 a fork's messages have new ids and numbers without gaps, and the source's times and run ids")
def _numbers(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    first = say(store, thread_id, "a", run_id="run-1")
    store.truncate_from(thread_id, say(store, thread_id, "gone").id)
    subject.clock.advance(3)
    last = answer(store, thread_id, "b", run_id="run-1")
    subject.clock.advance(3)
    fork = store.fork_thread(thread_id, last.id)
    copies = _messages(store, fork.id)
    same([copy.seq for copy in copies], [1, 2], "seq")
    same([copy.created_at for copy in copies], [START, START + timedelta(seconds=3)], "created_at")
    same([copy.run_id for copy in copies], ["run-1", "run-1"], "run_id")
    expect({copy.id for copy in copies}.isdisjoint({first.id, last.id}), "new ids")
    same(say(store, fork.id, "c").seq, 3, "the next seq")


@case(THREAD_CONTRACT, "20 a fork's call rows have new ids, and every id inside tool calls, results and ui follows")
def _call_ids(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    message = answer(
        store,
        thread_id,
        "",
        run_id="run-1",
        tool_calls=[{"id": "call-1", "providerCallId": "call-1", "name": "find", "input": {"id": "call-1"}}],
        tool_results=[{"id": "call-1", "name": "find", "output": "call-1"}],
        ui=[{"id": "call-1-u", "props": {"ids": ["call-1", "other"]}}],
    )
    new_call(store, message, "call-1")
    store.update_tool_call("call-1", ToolCallPatch(status="auto_executed", output="call-1", execution_ms=4))
    [copy] = _messages(store, store.fork_thread(thread_id, message.id).id)
    call = _copied_call(store, copy)
    expect(call.id != "call-1" and call.message_id == copy.id and call.thread_id == copy.thread_id, "the copied row")
    same((call.run_id, call.origin_call_id, call.status), (None, "call-1", "auto_executed"), "its run and origin")
    same((call.execution_ms, call.output), (4, "call-1"), "what a tool gave is not touched")
    same([item["id"] for item in copy.tool_results or ()], [call.id], "results")
    same(copy.ui, [{"id": "call-1-u", "props": {"ids": [call.id, "other"]}}], "ui")
    same((copy.tool_calls or [{}])[0]["input"], {"id": "call-1"}, "the input is the model's own")


@case(THREAD_CONTRACT, "21 an open call is failed in the fork and still open in the source")
def _open_calls(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    for status in ("running", "pending_approval", "proposed"):
        message = answer(store, thread_id, "", run_id="run-1", tool_calls=[{"id": status, "name": "find"}])
        new_call(store, message, status, status=status, approver="requester", proposal_id="p1")
    copies = _messages(store, store.fork_thread(thread_id, "all").id)
    calls = [_copied_call(store, copy) for copy in copies]
    same([call.status for call in calls], ["failed", "failed", "proposed"], "in the fork")
    left = "left open where the conversation was forked"
    same([call.error for call in calls], [left, left, None], "errors")
    same(calls[2].proposal_id, None, "nobody can approve it twice")
    source = ["running", "pending_approval", "proposed"]
    same([_call(store, status).status for status in source], source, "in the source")
    same(store.fail_unsettled_tool_calls("run-1", "over"), 2, "the source's run finds its own calls only")


@case(THREAD_CONTRACT, "22 changing the fork changes nothing in the source", needs=("feedback", "message_ui"))
def _apart(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    say(store, thread_id, "a")
    waiting_call(store, answer(store, thread_id, "b", run_id="run-1"), "call-1")
    before = store.get_thread(thread_id)
    fork = store.fork_thread(thread_id, "all")
    copies = _messages(store, fork.id)
    store.set_message_ui(copies[1].id, [{"id": "u"}])
    store.set_message_feedback(copies[1].id, {"value": "up"})
    store.truncate_from(fork.id, copies[0].id)
    store.set_title(fork.id, "other")
    store.purge_thread(fork.id)
    same(store.get_thread(thread_id), before, "the source")
    decided = store.decide_tool_call("call-1", ToolDecision(decision="approved", actor=ANA))
    same(decided.status, "applied", "its card")
