"""A kept journal, read from its file, and loaded into a store as a run that got that far."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agent.domain.actor import Actor
from agent.domain.approvals import REQUESTER
from agent.domain.commands import (
    AppendMessage,
    NewRun,
    RecordToolCall,
    RecordUsage,
    RunStart,
    ToolCallPatch,
    ToolDecision,
)
from agent.domain.ids import new_id
from agent.domain.model_calls import ModelRequest
from agent.domain.results import INTAKE, Payload, put_first, result_of, settled_by
from agent.domain.runs import RunLease, Step
from agent.domain.snapshots import Message
from agent.domain.states import ToolCallStatus, ToolType
from agent.flows import approvals
from agent.flows.call_rows import STORED_AS
from agent.store.base import AgentStore
from tests.anonymous import ID
from tests.golden import children

FOLDER = Path(__file__).parent
ALICE = Actor("alice")
STATUS = {
    "refused": ToolCallStatus.FAILED,
    "denied": ToolCallStatus.FAILED,
    "completed": ToolCallStatus.AUTO_EXECUTED,
    "approval": ToolCallStatus.PENDING_APPROVAL,
    "ask": ToolCallStatus.PENDING_APPROVAL,
    "proposed": ToolCallStatus.PROPOSED,
}
FOREIGN = "another:step"


@dataclass(frozen=True, kw_only=True)
class Golden:
    """What a file holds."""

    run: dict[str, Any]  # agent_name, model_id, persona, input
    before: list[dict[str, Any]]  # messages of the thread, the question included
    steps: list[dict[str, Any]]  # name, payload
    asked: dict[str, Any]  # what the model was shown at each step
    after: list[dict[str, Any]]  # messages of the thread when the run was over


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json"


def read(name: str) -> Golden:
    """The kept journal with ids of its own, so that it may be loaded many times into one database."""
    fresh: dict[str, str] = {}
    text = ID.sub(lambda found: fresh.setdefault(found[0], new_id()), path_of(name).read_text())
    return Golden(**json.loads(text))


def as_asked(request: ModelRequest) -> dict[str, Any]:
    """What a model was shown, as a file keeps it."""
    return {
        "system": request.system,
        "messages": [asdict(message) for message in request.messages],
        "tools": [spec.name for spec in request.tools],
    }


def as_message(message: Message) -> dict[str, Any]:
    """A message, as a file keeps it."""
    kept = ("id", "role", "content", "tool_calls", "tool_results", "usage", "reasoning", "ui", "persona", "agent_name")
    followed = {} if message.follow_ups is None else {"follow_ups": message.follow_ups}
    return {name: getattr(message, name) for name in kept} | followed


def decide(store: AgentStore, run_id: str, word: str) -> None:
    """Somebody decides about the call that the run waits for, or the agent answers that was asked."""
    if word == "delegated":
        children.play(store, run_id)
        return
    (pending,) = (each.tool_call.id for each in store.pending_approvals(9) if each.tool_call.run_id == run_id)
    match word:
        case "approved":
            approvals.approve(ALICE, pending)
        case "rejected":
            approvals.reject(ALICE, pending)
        case "answered":
            approvals.answer(ALICE, pending, {"note": ["In red."]})
        case "skipped":
            approvals.skip(ALICE, pending)
        case _:
            clock = store.clock
            store.clock = lambda: clock() + timedelta(seconds=61)
            assert approvals.expire_due() == 1


def load(store: AgentStore, golden: Golden, upto: int, *, foreign: int | None = None) -> str:
    """A thread and a run whose worker recorded that many steps and is gone; the run's id.

    The step at position `foreign` has a name that no release knows.
    """
    thread = store.create_thread(actor=ALICE, persona=golden.run["persona"])
    run_id = new_id()
    assert store.claim_active_run(thread.id, run_id)
    for message in golden.before:
        mine = message["id"] == golden.steps[0]["payload"].get("messageId")
        said = {name: message[name] for name in ("id", "role", "content")}
        store.append_message(AppendMessage(thread_id=thread.id, run_id=run_id if mine else None, **said))
    first = golden.steps[0]
    run = NewRun(id=run_id, thread_id=thread.id, actor=ALICE, **golden.run)
    store.create_run(run, (FOREIGN if foreign == 0 else first["name"], first["payload"]))
    worker = _Worker(store, golden, thread.id, run_id)
    worker.record(golden.steps[1:upto], foreign=foreign)
    return run_id


class _Worker:
    """Records steps with the rows that they cause, as the one did whose journal this is."""

    def __init__(self, store: AgentStore, golden: Golden, thread_id: str, run_id: str) -> None:
        self._store, self._golden, self._thread_id, self._run_id = store, golden, thread_id, run_id
        lease = store.claim_run(run_id, "gone", 60)
        assert lease is not None
        self._lease: RunLease = lease
        self._calls: dict[str, dict[str, Any]] = {}
        self._message_id = ""
        self._judged = False  # what the model says is kept by the step after it
        self._told: dict[str, Any] = {}
        self._results: list[dict[str, Any]] = []

    def record(self, steps: Sequence[dict[str, Any]], *, foreign: int | None) -> None:
        for position, step in enumerate(steps, start=1):
            name, payload = step["name"], step["payload"]
            start = self._started(payload) if name == "persist:run:start" else None
            with self._store.atomic():
                self._rows(name, payload)
                told = FOREIGN if position == foreign else name
                recorded = Step(position=position, name=told, payload=payload)
                self._store.record_steps(self._lease, [recorded], start=start)
        clock = self._store.clock
        self._store.clock = lambda: clock() + timedelta(seconds=61)  # the lease has lapsed

    def _started(self, payload: dict[str, Any]) -> RunStart:
        run = {name: self._golden.run[name] for name in ("agent_name", "model_id", "persona")}
        return RunStart(prompt_hash=payload["promptHash"], **run)

    def _rows(self, name: str, payload: Any) -> None:
        if name == "run:prompt-stages":
            self._judged = "outputProcessors" in payload
        elif name.startswith(("history:", "process:", "structured:", "followups:")):
            self._aside(name, payload)
        elif name.startswith("llm:"):
            self._answered(name, payload)
        elif name == INTAKE:
            self._asked_first(payload)
        elif name.startswith("persist:toolcall:"):
            self._called(payload, self._calls[name.rpartition(":")[2]])
        elif name.startswith("await:"):
            self._decided(payload, self._calls[name.rpartition(":")[2]])
        elif name.startswith("tool:"):
            self._settled(payload, self._calls[name.rpartition(":")[2]])

    def _aside(self, name: str, payload: dict[str, Any]) -> None:
        match name.partition(":")[0]:
            case "process" if "verdict" in payload:
                self._said(self._told | payload, usage=self._told["usage"])
            case "structured":
                self._structured(name, payload)
            case "followups":
                self._paid(name, "follow_ups")
                self._store.set_message_follow_ups(self._message_id, payload["items"])
            case "history":
                self._paid(name, "history_summary")

    def _structured(self, name: str, payload: dict[str, Any]) -> None:
        self._paid(name, "structured_output")
        if (call := payload.get("call")) is not None:
            self._store.set_message_tool_calls(self._message_id, [call])
            self._calls = {call["id"]: call}
            self._called({"branch": "completed", "kind": call["kind"], "output": payload["value"]}, call)

    def _paid(self, name: str, purpose: str) -> None:
        self._store.record_usage(
            RecordUsage(
                thread_id=self._thread_id,
                run_id=self._run_id,
                actor_ref=ALICE.ref,
                model_id="m",
                purpose=purpose,
                step_key=name,
            )
        )

    def _asked_first(self, payload: dict[str, Any]) -> None:
        self._said(payload, usage=None)
        (call,) = payload["toolCalls"]
        self._called({"kind": call["kind"], **put_first(call)}, call)

    def _answered(self, name: str, payload: dict[str, Any]) -> None:
        counts = payload["usage"]
        self._store.record_usage(
            RecordUsage(
                thread_id=self._thread_id,
                run_id=self._run_id,
                message_id=payload["messageId"],
                actor_ref=ALICE.ref,
                tenant_ref=None,
                agent_name=self._golden.run["agent_name"],
                model_id=payload["modelId"],
                purpose="chat",
                step_key=name,
                input_tokens=counts["inputTokens"],
                output_tokens=counts["outputTokens"],
                cache_read_tokens=counts["cacheReadTokens"],
                tokens_source="reported",
            )
        )
        self._told = payload
        if payload["messageId"] is not None and not self._judged:
            self._said(payload, usage=counts)

    def _said(self, payload: dict[str, Any], *, usage: dict[str, Any] | None) -> None:
        self._calls = {call["id"]: call for call in payload["toolCalls"]}
        self._message_id, self._results = payload["messageId"], []
        self._store.append_message(
            AppendMessage(
                id=payload["messageId"],
                thread_id=self._thread_id,
                role="assistant",
                content=payload["text"],
                tool_calls=payload["toolCalls"] or None,
                usage=usage,
                run_id=self._run_id,
                reasoning=payload.get("reasoning"),
                agent_name=self._golden.run["agent_name"],
                persona=self._golden.run["persona"],
            )
        )

    def _called(self, payload: dict[str, Any], call: dict[str, Any]) -> None:
        branch, deadline = payload["branch"], payload.get("deadline")
        if call["kind"] == "agent":
            children.begun(self._store, self._run_id, payload, call, by=ALICE)
        settled = settled_by(payload)
        status = STATUS.get(branch, ToolCallStatus.RUNNING)
        self._store.record_tool_call(
            RecordToolCall(
                id=call["id"],
                provider_call_id=call["providerCallId"],
                message_id=self._message_id,
                thread_id=self._thread_id,
                run_id=self._run_id,
                actor_ref=ALICE.ref,
                tenant_ref=None,
                agent_name=self._golden.run["agent_name"],
                tool_name=call["name"],
                tool_type=STORED_AS.get(payload["kind"], ToolType.READ),
                input=call["input"],
                status=status,
                output=payload.get("output"),
                error=payload.get("failure"),
                approver=REQUESTER if branch == "ask" else payload.get("approver"),
                expires_at=None if deadline is None else datetime.fromisoformat(deadline),
                proposal_id=payload.get("proposalId"),
                confirmation=payload.get("confirmation"),
            )
        )
        if settled is not None:
            self._result(call, settled)

    def _decided(self, payload: dict[str, Any], call: dict[str, Any]) -> None:
        if call["kind"] == "agent":
            children.ended(self._store, self._run_id)
            return
        answers = payload.get("output", {}).get("answers")
        decision = ToolDecision(decision=payload["status"], actor=ALICE, answers=answers)
        self._store.decide_tool_call(call["id"], decision)
        if "output" in payload:
            self._result(call, payload)

    def _settled(self, payload: dict[str, Any], call: dict[str, Any]) -> None:
        row = self._store.get_tool_call(call["id"])
        asked = row is not None and row.approver is not None
        done = ToolCallStatus.EXECUTED if asked else ToolCallStatus.AUTO_EXECUTED
        status = ToolCallStatus.FAILED if "error" in payload else done
        patch = ToolCallPatch(status=status, output=payload.get("output"), error=payload.get("error"))
        self._store.update_tool_call(call["id"], patch)
        self._result(call, payload)

    def _result(self, call: dict[str, Any], payload: Payload) -> None:
        self._results.append(result_of(call, payload))
        order = list(self._calls)
        self._results.sort(key=lambda result: order.index(result["id"]))
        self._store.set_message_tool_results(self._message_id, self._results)
