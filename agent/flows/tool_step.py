"""The tool calls of one step of a turn: admitted, run, and recorded in call order (spec 03 §4 i-m, §6)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agent.domain import frames
from agent.domain.commands import RecordToolCall, ToolCallPatch
from agent.domain.model_calls import Frame, Json
from agent.domain.runs import Run
from agent.domain.states import ToolCallStatus, ToolType
from agent.flows import events, spans
from agent.flows.answers import Told
from agent.flows.journal import Attempt, Unit
from agent.flows.tools import Offered, Refused, ToolResult, admit, execute
from agent.registry import ToolContext
from agent.store.base import AgentStore

PARALLEL = frozenset({"read", "skill", "memory"})
STORED_AS = {"action": ToolType.ACTION, "ask": ToolType.ACTION}


@dataclass(slots=True, kw_only=True)
class Pending:
    """A call that is to run: its tool, its validated input, and the position of its effect."""

    call: dict[str, Any]
    tool: Offered
    input: BaseModel
    attempt: Attempt
    terminal: bool  # as it was recorded
    repeated: bool


class ToolStep:
    """Runs every call of a step in one batch when all are reads, else strictly one at a time."""

    def __init__(
        self,
        store: AgentStore,
        run: Run,
        told: Told,
        offered: Sequence[Offered],
        context: Callable[[str], ToolContext],
        *,
        attempt: int,
        terminal: Collection[str] | None,
    ) -> None:
        calls: list[dict[str, Any]] = told["toolCalls"]
        parallel = all(call["kind"] in PARALLEL for call in calls)
        self._store, self._run, self._offered, self._context = store, run, offered, context
        self._attempt, self._declared_terminal = attempt, terminal
        self._message_id: str = told["messageId"]
        self._order = [call["id"] for call in calls]
        self._batches = deque([calls] if parallel else [[call] for call in calls])
        self._results: dict[str, dict[str, Any]] = {}
        self._ui: list[Frame] = []
        self._terminal = False
        self._wrote = False  # this batch's first results, before its bodies ran
        self.pending: list[Pending] = []

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results so far, in call order."""
        return [self._results[call_id] for call_id in self._order if call_id in self._results]

    @property
    def more(self) -> bool:
        return bool(self._batches)

    def admit_next(self, unit: Unit) -> list[Frame]:
        """Record the next batch: refused calls are settled here, the others get the position of their effect."""
        told, recorded, self.pending = list[Frame](), len(unit.steps), []
        admitted = [(call, self._admit(unit, call)) for call in self._batches.popleft()]
        for call, (payload, allowed) in admitted:
            if payload["branch"] != "run":
                told += self._take(call, {"error": payload["failure"]})
            elif not isinstance(allowed, Refused):
                attempt = unit.mark(f"tool:{call['id']}")
                self.pending.append(
                    Pending(
                        call=call,
                        tool=allowed[0],
                        input=allowed[1],
                        attempt=attempt,
                        terminal=payload["terminal"],
                        repeated=attempt.repeated,
                    )
                )
            else:  # recorded as to run, and its tool is gone or closed meanwhile
                told += self._take(call, unit.write(f"tool:{call['id']}", self._fail_row, call, allowed.message))
        self._wrote = bool(told) and len(unit.steps) > recorded  # else the message has them, and maybe more
        if self._wrote:
            self._store.set_message_tool_results(self._message_id, self.results)
        if self.pending and self.pending[0].repeated:
            for again in (each for each in self.pending if not each.attempt.done):
                events.tool_repeated(self._store, self._run, again.call, attempt=self._attempt)
        return told

    async def run(self) -> list[ToolResult | None]:
        """Run the bodies of the batch, all started in one tick; None for those that are recorded."""
        return list(await asyncio.gather(*(self._execute(pending) for pending in self.pending)))

    def ends_turn(self, outcomes: Sequence[ToolResult | None]) -> bool:
        """Whether a terminal tool has succeeded: then nobody asks the model again."""
        return self._terminal or any(
            pending.terminal and _succeeded(pending, outcome)
            for pending, outcome in zip(self.pending, outcomes, strict=True)
        )

    def settle(self, unit: Unit, outcomes: Sequence[ToolResult | None]) -> list[Frame]:
        """Record the outcomes in call order, with the complete results of the message."""
        told: list[Frame] = []
        for pending, outcome in zip(self.pending, outcomes, strict=True):
            payload = unit.settle(pending.attempt, self._record, pending, outcome)
            told += self._take(pending.call, payload)
        if any(self._wrote or not pending.attempt.done for pending in self.pending):
            self._store.set_message_tool_results(self._message_id, self.results)
        return told

    def close(self, unit: Unit, step: int) -> bool:
        """Record the step's outputs; True when a terminal tool succeeded."""
        outputs = unit.write(f"persist:tool-outputs:{step}", self._outputs)
        return bool(outputs["terminal"])

    def _admit(self, unit: Unit, call: dict[str, Any]) -> tuple[dict[str, Any], tuple[Offered, BaseModel] | Refused]:
        allowed = admit(self._offered, call["name"], call["input"])
        payload = unit.write(f"persist:toolcall:{call['id']}", self._persist, call, allowed)
        return payload, allowed

    def _persist(self, call: dict[str, Any], allowed: tuple[Offered, BaseModel] | Refused) -> dict[str, Any]:
        refused = isinstance(allowed, Refused)
        self._store.record_tool_call(
            RecordToolCall(
                id=call["id"],
                provider_call_id=call["providerCallId"],
                message_id=self._message_id,
                thread_id=self._run.thread_id,
                run_id=self._run.id,
                actor_ref=self._run.actor.ref,
                tenant_ref=self._run.actor.tenant_ref,
                agent_name=self._run.agent_name,
                tool_name=call["name"],
                tool_type=STORED_AS.get(call["kind"], ToolType.READ),
                input=call["input"] if isinstance(allowed, Refused) else allowed[1].model_dump(mode="json"),
                status=ToolCallStatus.FAILED if refused else ToolCallStatus.RUNNING,
                error=allowed.message if isinstance(allowed, Refused) else None,
                executed_by_ref=None if refused else self._run.actor.ref,
            )
        )
        if isinstance(allowed, Refused):
            self._settled(call, ToolCallStatus.FAILED)
            return {"kind": call["kind"], "branch": "refused", "failure": allowed.message}
        return {"kind": call["kind"], "branch": "run", "terminal": self._is_terminal(allowed[0])}

    def _is_terminal(self, offered: Offered) -> bool:
        """As the run's start recorded it; a run from before that was recorded goes by today's declaration."""
        names = self._declared_terminal
        return offered.tool.terminal if names is None else offered.tool.name in names

    def _fail_row(self, call: dict[str, Any], failure: str) -> dict[str, Any]:
        self._store.update_tool_call(call["id"], ToolCallPatch(status=ToolCallStatus.FAILED, error=failure))
        self._settled(call, ToolCallStatus.FAILED)
        return {"error": failure, "ms": 0}

    def _settled(self, call: dict[str, Any], status: ToolCallStatus, *, ms: int | None = None) -> None:
        """Tell that a call is over. The name of a tool that does not exist is the model's own word: it is not told."""
        known = any(each.spec.name == call["name"] for each in self._offered)
        told = call if known else {**call, "name": None}
        stored_as = STORED_AS.get(call["kind"], ToolType.READ)
        events.tool_settled(self._store, self._run, told, tool_type=stored_as, status=status, ms=ms)

    async def _execute(self, pending: Pending) -> ToolResult | None:
        if pending.attempt.done:
            return None
        work = execute(pending.tool.tool, pending.input, self._context(pending.call["id"]))
        return await spans.executed(self._run, pending.call, work)

    def _record(self, pending: Pending, outcome: ToolResult | None) -> dict[str, Any]:
        assert outcome is not None
        failed = outcome.error is not None
        status = ToolCallStatus.FAILED if failed else ToolCallStatus.AUTO_EXECUTED
        self._store.update_tool_call(
            pending.call["id"],
            ToolCallPatch(
                status=status,
                output=outcome.output,
                error=outcome.detail or outcome.error,
                execution_ms=outcome.ms,
            ),
        )
        self._settled(pending.call, status, ms=outcome.ms)
        payload: dict[str, Json] = {"error": outcome.error} if failed else {"output": outcome.output}
        return {
            **payload,
            "ms": outcome.ms,
            "ui": [*outcome.ui, *_spoken(pending.call["id"], outcome.text)],
            "terminal": pending.terminal,
        }

    def _take(self, call: dict[str, Any], payload: dict[str, Any]) -> list[Frame]:
        """Put a recorded outcome among the results; its frames."""
        call_id = call["id"]
        self._results[call_id] = result = _result(call, payload)
        self._terminal |= "error" not in payload and bool(payload.get("terminal"))
        shown = [{"kind": "ui", "toolCallId": call_id, **component} for component in payload.get("ui") or ()]
        self._ui += [frame for frame in shown if frame not in self._ui]
        return [frames.tool_result(result), *shown]

    def _outputs(self) -> dict[str, Any]:
        components = frames.stored_ui(self._ui)
        if components and "message_ui" in self._store.capabilities:
            self._store.set_message_ui(self._message_id, components)
        return {"messageIds": [self._message_id], "terminal": self._terminal}


def _spoken(call_id: str, text: str | None) -> list[dict[str, Json]]:
    """A presentation that is only words, kept and shown like any component of its call."""
    if not text:
        return []
    return [
        {
            "id": f"{call_id}:text",
            "component": "text",
            "props": {"text": text},
            "fallbackText": text,
            "toolCallId": call_id,
        }
    ]


def _succeeded(pending: Pending, outcome: ToolResult | None) -> bool:
    return outcome.error is None if outcome is not None else "error" not in dict(pending.attempt.payload())


def _failed(call: dict[str, Any], failure: str) -> dict[str, Any]:
    return {"id": call["id"], "name": call["name"], "output": None, "error": failure}


def _result(call: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
    if "error" in payload:
        return _failed(call, payload["error"])
    return {"id": call["id"], "name": call["name"], "output": payload["output"]}
