"""TOOL_CALL_CONTRACT (spec 02 §5.3). The part of case 10 about the independent mode waits for proposals."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from agent.domain.actor import Actor
from agent.domain.commands import ToolCallPatch, ToolDecision
from agent.domain.snapshots import ToolCall
from agent.domain.states import ToolCallStatus
from agent.errors import NotFound
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import ANA, called_message, new_call, waiting_call
from agent.testing.contracts.store import START, StoreCase, StoreSubject, case

TOOL_CALL_CONTRACT: list[StoreCase] = []
LEAD = Actor("lead", ("lead",), "acme")


def stored_call(store: AgentStore, call_id: str = "call-1") -> ToolCall:
    call = store.get_tool_call(call_id)
    if call is None:
        raise ContractMismatch(f"the call {call_id} is gone")
    return call


@case(TOOL_CALL_CONTRACT, "01 recording a provider's id twice in one run keeps one row and changes nothing")
def _twice(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    first = new_call(store, message, "call-1", provider_call_id="toolu")
    again = new_call(store, message, "call-2", provider_call_id="toolu", status="failed", input={"n": 2})
    same((first, again), ("call-1", "call-1"), "ids")
    same((stored_call(store).status, stored_call(store).input), ("running", {"n": 1}), "the row")
    same(store.get_tool_call("call-2"), None, "the second row")


@case(TOOL_CALL_CONTRACT, "01b of racing records of one provider's id one row is kept", commits=True)
def _racing_records(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    records = [partial(new_call, store, message, f"call-{n}", provider_call_id="toolu") for n in range(4)]
    ids = subject.parallel(records)
    expect(len(set(ids)) == 1 and store.get_tool_call(ids[0]) is not None, f"one id: {ids}")


@case(TOOL_CALL_CONTRACT, "02 a provider's id in two runs makes two rows; of no run it is never a repeat")
def _two_runs(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    for call_id, run_id in (("c1", "r1"), ("c2", "r2"), ("c3", None), ("c4", None)):
        same(new_call(store, message, call_id, provider_call_id="toolu", run_id=run_id), call_id, "its own id")


@case(TOOL_CALL_CONTRACT, "02b a provider's id that does not fit is stored as its hash and still recognised")
def _long_id(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    for number, odd in enumerate(("x" * 256, "a\x00b", "\ud800")):
        same(new_call(store, message, f"c{number}", provider_call_id=odd), f"c{number}", "first")
        same(new_call(store, message, f"d{number}", provider_call_id=odd), f"c{number}", "again")
        same(len(stored_call(store, f"c{number}").provider_call_id), 64, "a hash")
    same(stored_call(store, new_call(store, message, "e", provider_call_id="y" * 255)).provider_call_id, "y" * 255, "")


@case(TOOL_CALL_CONTRACT, "03 executed_at is set for the two executed statuses only, settled_at for terminal ones")
def _times(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    message = called_message(store)
    times: dict[str, tuple[datetime | None, datetime | None]] = {}
    for status in ("auto_executed", "executed", "failed"):
        new_call(store, message, status)
        later = clock.advance(1)
        expect(store.update_tool_call(status, ToolCallPatch(status=status)), status)
        call = stored_call(store, status)
        times[status] = (call.executed_at, call.settled_at)
        wanted = (None if status == "failed" else later, later)
        same(times[status], wanted, status)
    new_call(store, message, "open")
    store.update_tool_call("open", ToolCallPatch(execution_ms=3))
    call = stored_call(store, "open")
    same((call.executed_at, call.settled_at, call.execution_ms), (None, None, 3), "an open call")
    new_call(store, message, "at once", status="executed", decision="remembered", decided_via="remembered")
    call = stored_call(store, "at once")
    same((call.executed_at, call.settled_at, call.decided_at), (clock.now,) * 3, "recorded as executed")


@case(TOOL_CALL_CONTRACT, "03b a settled call is not settled again; left-out fields stay, None clears")
def _patch(subject: StoreSubject) -> None:
    store = subject.store
    new_call(store, called_message(store))
    store.update_tool_call("call-1", ToolCallPatch(status="failed", error="no\x00", output={"a": 1}))
    expect(not store.update_tool_call("call-1", ToolCallPatch(status="executed", output=2)), "settled twice")
    expect(store.update_tool_call("call-1", ToolCallPatch(output=None)), "a patch without a status")
    call = stored_call(store)
    same((call.status, call.error, call.output, call.input), ("failed", "no\ufffd", None, {"n": 1}), "the row")
    expect(not store.update_tool_call("nobody", ToolCallPatch(error="x")), "an unknown call")


@case(TOOL_CALL_CONTRACT, "03c a call takes only the statuses that its own leads to")
def _moves(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    ways = {
        "running": ["running", "executed", "auto_executed", "failed"],
        "pending_approval": ["pending_approval", "executed", "rejected", "failed", "expired"],
    }
    for seen, allowed in ways.items():
        for new in ToolCallStatus:
            call_id = new_call(store, message, f"{seen} to {new}", status=seen)
            moved = store.update_tool_call(call_id, ToolCallPatch(status=new.value))
            same(
                (moved, stored_call(store, call_id).status), (new in allowed, new if new in allowed else seen), call_id
            )


@case(TOOL_CALL_CONTRACT, "04 tool results are replaced, never appended; nothing is stored as absent")
def _results(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    for results in ([{"id": "a", "output": 1}, {"id": "b", "output": 2}], [{"id": "b", "output": 3}], []):
        store.set_message_tool_results(message.id, results)
        [stored] = store.messages_of_run(message.thread_id, "run-1") or []
        same(stored.tool_results, results or None, "tool_results")
    store.set_message_tool_results("nobody", [])


@case(TOOL_CALL_CONTRACT, "04b the calls of a message are replaced as a whole; its text and results stay")
def _calls(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    for calls in ([{"id": "a", "name": "x\x00"}], [{"id": "b"}, {"id": "c"}], []):
        store.set_message_tool_calls(message.id, calls)
        [stored] = store.messages_of_run(message.thread_id, "run-1") or []
        same(stored.tool_calls, calls or None, "tool_calls")
        same((stored.content, stored.tool_results), (message.content, message.tool_results), "the rest")
    store.set_message_tool_calls("nobody", [])


@case(TOOL_CALL_CONTRACT, "05 the run of a call is the row's own, else the thread's")
def _run(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store, held_by="parent")
    new_call(store, message, "child's", run_id="child")
    new_call(store, message, "nobody's", run_id=None)
    runs = [store.run_for_tool_call(call_id) for call_id in ("child's", "nobody's", "unknown")]
    same(runs, ["child", "parent", None], "run_for_tool_call")


@case(TOOL_CALL_CONTRACT, "09 a run's unsettled calls are failed and counted once")
def _fail(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    new_call(store, message, "running")
    waiting_call(store, message, "waiting")
    new_call(store, message, "done", status="auto_executed")
    new_call(store, message, "another's", run_id="run-2")
    same([store.fail_unsettled_tool_calls("run-1", "the run failed") for _ in range(2)], [2, 0], "failed")
    calls = [stored_call(store, call_id) for call_id in ("running", "waiting", "done", "another's")]
    same([call.status for call in calls], ["failed", "failed", "auto_executed", "running"], "statuses")
    same((calls[0].error, calls[0].settled_at, calls[0].executed_at), ("the run failed", START, None), "the row")
    decided = store.decide_tool_call("waiting", ToolDecision(decision="approved", actor=ANA))
    same(decided.status, "conflict", "a card of a run that is over")


@case(TOOL_CALL_CONTRACT, "11 outcomes leave out unknown ids")
def _outcomes(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    new_call(store, message, "done")
    store.update_tool_call("done", ToolCallPatch(status="auto_executed", output={"n": 1}))
    waiting_call(store, message, "refused")
    store.decide_tool_call("refused", ToolDecision(decision="rejected", actor=ANA, reason="no"))
    outcomes = store.tool_call_outcomes(["done", "nobody", "refused", "done"])
    same(set(outcomes), {"done", "refused"}, "ids")
    same((outcomes["done"].status, outcomes["done"].output), ("auto_executed", {"n": 1}), "what was done")
    refused = outcomes["refused"]
    same(
        (refused.status, refused.decision, refused.decision_reason), ("rejected", "rejected", "no"), "what was refused"
    )
    same(store.tool_call_outcomes([]), {}, "no ids")


@case(TOOL_CALL_CONTRACT, "12 a call of an unknown message is not recorded")
def _unknown_message(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    store.truncate_from(message.thread_id, message.id)
    try:
        new_call(store, message)
    except NotFound:
        same(store.get_tool_call("call-1"), None, "the row")
        return
    raise ContractMismatch("a call of no message was recorded")
