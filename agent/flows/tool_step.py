"""The tool calls of one step of a turn: admitted, decided, run, and recorded in call order (spec 03 §4 i-m, §6)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from agent.domain import frames
from agent.domain.actor import Owner
from agent.domain.approvals import ApprovalThread
from agent.domain.model_calls import Frame, Json
from agent.domain.results import Payload, card_frames, result_of, settled_by
from agent.domain.runs import Run
from agent.flows import delegation, events, spans
from agent.flows.call_rows import QUESTIONS, Call, CallRows
from agent.flows.journal import Attempt, Unit
from agent.flows.preflight import Card, perform, prepare
from agent.flows.tools import Admitted, Offered, Refused, ToolResult, admit, execute, failed
from agent.registry import ToolContext

Outcome = ToolResult | Card | None  # of what was pending; None = it is recorded

PARALLEL = frozenset({"read", "skill", "memory"})
AGENTS = frozenset({"agent"})  # another run answers them
WAITS = frozenset({"approval", "ask", delegation.AWAITED})
ACTIONS = frozenset({"action"})  # their preflight and the approval policy are asked
CHANGED = "The arguments mean something else than when they were approved. Nothing was done."
UNKNOWN = (
    "The outcome of this call is unknown: its worker was lost while it ran. Have it checked by a person, and do not "
    "call it again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """A call of an action before anybody is asked, and the position of its record."""

    call: Call
    allowed: Admitted
    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A call that is to run, and the position of its effect; `asked`: somebody had allowed it."""

    call: Call
    allowed: Admitted
    attempt: Attempt
    asked: bool
    terminal: bool  # as it was recorded

    @property
    def is_lost(self) -> bool:
        """Begun by a worker that is gone, and not to be begun again."""
        return self.attempt.repeated and self.allowed.offered.tool.on_lost == "hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A call that a person decides about, or another run answers."""

    call: Call
    allowed: Admitted | Refused
    asked: Payload  # as it was recorded


class ToolStep:
    """Runs every call of a step in one batch when all are reads, else strictly one at a time."""

    def __init__(
        self,
        rows: CallRows,
        offered: Sequence[Offered],
        context: Callable[[str], ToolContext],
        *,
        attempt: int,
    ) -> None:
        calls = rows.calls
        parallel = all(call["kind"] in PARALLEL for call in calls)
        self._rows, self._store, self._run = rows, rows.store, rows.run
        self._offered, self._context, self._attempt = offered, context, attempt
        self._order = [call["id"] for call in calls]
        self._batches = deque([calls] if parallel else [[call] for call in calls])
        self._results: dict[str, dict[str, Any]] = {}
        self._unsaved = False  # there are results that the message lacks
        self._ui: list[Frame] = []
        self._terminal = False
        self._proposed = False
        self._waiting: Waiting | None = None
        self._pending: list[Preparation | Body] = []

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results so far, in call order."""
        return [self._results[call_id] for call_id in self._order if call_id in self._results]

    @property
    def more(self) -> bool:
        """Whether something is left once what is pending has ended."""
        prepares = any(isinstance(pending, Preparation) for pending in self._pending)
        return prepares or self._waiting is not None or bool(self._batches)

    @property
    def waits_for(self) -> str | None:
        """The call that somebody has to decide before anything goes on."""
        return None if self._waiting is None else str(self._waiting.call["id"])

    def go_on(self, unit: Unit) -> list[Frame]:
        """Record what comes next: the next batch unless something is to run first, and a decision that is there."""
        told: list[Frame] = []
        if self._batches and not self._pending and self._waiting is None:
            told += self._recorded(unit, self._admit_batch)
        if self._waiting is not None:
            told += self._recorded(unit, partial(self._decided, self._waiting))
        self._tell_repeated()
        return told

    async def run(self) -> list[Outcome]:
        """Do what is pending, all started in one tick; None for what is recorded."""
        return list(await asyncio.gather(*(self._do(pending) for pending in self._pending)))

    def ends_turn(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether a terminal tool has succeeded, or a proposal was made: then nobody asks the model again."""
        pairs = zip(self._pending, outcomes, strict=True)
        return (self._terminal or self._proposed) or any(
            isinstance(pending, Body) and pending.terminal and _succeeded(pending, outcome)
            for pending, outcome in pairs
        )

    def settle(self, unit: Unit, outcomes: Sequence[Outcome]) -> list[Frame]:
        """Record the outcomes in call order, with the complete results of the message."""
        self._rows.hold()
        return self._recorded(unit, partial(self._settle_all, outcomes))

    def _settle_all(self, outcomes: Sequence[Outcome], unit: Unit) -> list[Frame]:
        told: list[Frame] = []
        done, self._pending = self._pending, []
        for pending, outcome in zip(done, outcomes, strict=True):
            if isinstance(pending, Body):
                payload = unit.settle(pending.attempt, self._settle, pending, outcome)
                told += self._take(pending.call, payload)
            else:
                payload = unit.settle(pending.attempt, self._prepared, pending, outcome)
                told += self._branch(unit, pending.call, pending.allowed, payload)
        return told

    def close(self, unit: Unit, step: int) -> list[Frame]:
        """Record the step's outputs; the frames of the words that stand for components."""
        components = frames.stored_ui(self._ui)
        ends = {"terminal": self._terminal, "proposed": self._proposed}
        outputs = unit.write(f"persist:tool-outputs:{step}", self._rows.close, components, **ends)
        return [frames.text(outputs["words"])] if "words" in outputs else []

    def _admit_batch(self, unit: Unit) -> list[Frame]:
        """Record the next batch: refused calls are settled here, the others get the position of what they need."""
        told: list[Frame] = []
        calls = [(call, admit(self._offered, call["name"], call["input"])) for call in self._batches.popleft()]
        recorded = [(call, allowed, self._persist(unit, call, allowed)) for call, allowed in calls]
        for call, allowed, payload in recorded:
            if payload is not None:
                told += self._branch(unit, call, allowed, payload)
        return told

    def _tell_repeated(self) -> None:
        """Bodies that were begun before a crash: parallel ones stand under the marker of the first."""
        bodies = [each for each in self._pending if isinstance(each, Body)]
        if bodies and bodies[0].attempt.repeated and not bodies[0].is_lost:
            for body in (each for each in bodies if not each.attempt.done):
                events.tool_repeated(self._store, self._run, body.call, attempt=self._attempt)

    def _persist(self, unit: Unit, call: Call, allowed: Admitted | Refused) -> Payload | None:
        """The record of a call; None when the host has to be asked first."""
        name = f"persist:toolcall:{call['id']}"
        if isinstance(allowed, Refused):
            known = any(each.spec.name == call["name"] for each in self._offered)
            return _payload(unit.write(name, self._rows.refuse, call, allowed.message, known=known))
        if call["kind"] in QUESTIONS:
            asked = allowed.input.model_dump(mode="json", exclude_none=True)
            return _payload(unit.write(name, self._rows.ask, call, asked))
        if call["kind"] in AGENTS:
            return _payload(unit.write(name, delegation.hand_over, self._rows, call, allowed))
        if call["kind"] not in ACTIONS:
            return _payload(unit.write(name, self._rows.begin, call, allowed))
        attempt = unit.mark(name, counted=False)
        if attempt.done:
            return _payload(attempt.payload())
        self._pending.append(Preparation(call=call, allowed=allowed, attempt=attempt))
        return None

    def _branch(self, unit: Unit, call: Call, allowed: Admitted | Refused, payload: Payload) -> list[Frame]:
        """Where a recorded call goes: it is over, it waits for somebody, or it runs."""
        card = card_frames(call["id"], payload, None)
        self._proposed |= payload["branch"] == "proposed"
        if (settled := settled_by(payload)) is not None:
            return card + self._take(call, settled)
        if payload["branch"] in WAITS:
            self._waiting = Waiting(call=call, allowed=allowed, asked=payload)
            return card
        return card + self._start(unit, call, allowed, payload)

    def _start(self, unit: Unit, call: Call, allowed: Admitted | Refused, persisted: Payload) -> list[Frame]:
        name = f"tool:{call['id']}"
        if isinstance(allowed, Refused):  # it was recorded as to run, and its tool is gone or closed meanwhile
            return self._take(call, unit.write(name, self._rows.fail, call, allowed.message))
        attempt = unit.mark(name)
        asked, terminal = "approver" in persisted, persisted["terminal"]
        self._pending.append(Body(call=call, allowed=allowed, attempt=attempt, asked=asked, terminal=terminal))
        return []

    def _decided(self, waiting: Waiting, unit: Unit) -> list[Frame]:
        """Record what the call waits for, if it is there; what was approved is what runs."""
        if waiting.asked["branch"] == delegation.AWAITED:
            return self._returned(waiting, unit)
        payload = self._rows.decision(unit, waiting.call)
        if payload is None:
            return []
        self._waiting, call_id = None, waiting.call["id"]
        card = card_frames(call_id, None, payload)
        if payload["status"] != "approved":
            return card + self._take(waiting.call, payload)
        allowed = waiting.allowed
        if isinstance(allowed, Admitted) and not unit.holds(f"tool:{call_id}"):
            approved = self._store.tool_call_input(call_id)
            if allowed.input.model_dump(mode="json") != approved:
                allowed = Refused(code="changed", message=CHANGED)
        return card + self._start(unit, waiting.call, allowed, waiting.asked)

    def _returned(self, waiting: Waiting, unit: Unit) -> list[Frame]:
        """Record what the agent that was asked has answered, if it is done."""
        returned = delegation.returned(unit, self._rows, waiting.call, waiting.asked)
        if returned is None:
            return []
        self._waiting = None
        return [*returned.untold, *self._take(waiting.call, returned.payload)]

    async def _do(self, pending: Preparation | Body) -> Outcome:
        if pending.attempt.done:
            return None
        tool, given = pending.allowed.offered.tool, pending.allowed.input
        context = self._context(pending.call["id"])
        if isinstance(pending, Preparation):
            return await prepare(tool, given, context, thread=_thread_of(self._run))
        if pending.is_lost:
            return failed("outcome_unknown", UNKNOWN)
        work = perform if pending.call["kind"] in ACTIONS else execute
        return await spans.executed(self._run, pending.call, work(tool, given, context))

    def _prepared(self, pending: Preparation, outcome: Outcome) -> dict[str, Any]:
        assert outcome is not None
        return self._rows.prepared(pending.call, pending.allowed, outcome)

    def _settle(self, pending: Body, outcome: Outcome) -> dict[str, Any]:
        assert isinstance(outcome, ToolResult)
        return self._rows.settle(pending.call, outcome, asked=pending.asked, terminal=pending.terminal)

    def _take(self, call: Call, payload: Payload) -> list[Frame]:
        """Put a recorded outcome among the results; its frames."""
        call_id = call["id"]
        self._results[call_id] = result = result_of(call, payload)
        self._unsaved = True
        self._terminal |= not {"error", "denied"} & payload.keys() and bool(payload.get("terminal"))
        shown = [{"kind": "ui", "toolCallId": call_id, **component} for component in payload.get("ui") or ()]
        self._ui += [frame for frame in shown if frame not in self._ui]
        return [frames.tool_result(result), *shown]

    def _recorded(self, unit: Unit, work: Callable[[Unit], list[Frame]]) -> list[Frame]:
        """Do it; what it records is kept on the message and told, unless all of it was recorded before."""
        recorded = len(unit.steps)
        told = work(unit)
        is_new = len(unit.steps) > recorded
        if self._unsaved and is_new:
            self._rows.save(self.results)
        self._unsaved = False
        return told if is_new else []


def _succeeded(pending: Body, outcome: Outcome) -> bool:
    if isinstance(outcome, ToolResult):
        return outcome.succeeded
    return not {"error", "denied"} & dict(pending.attempt.payload()).keys()


def _thread_of(run: Run) -> ApprovalThread:
    owner = Owner(run.actor.ref, run.actor.tenant_ref)
    return ApprovalThread(id=run.thread_id, owner=owner, run_id=run.id, agent_name=run.agent_name)


def _payload(recorded: Json) -> Payload:
    return cast("Payload", recorded)
