"""The rows of a step's tool calls: each method is what one journal step writes, and answers its payload."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, cast

from pydantic import BaseModel

from agent.conf import agent_settings
from agent.domain.approvals import REQUESTER, Requirement
from agent.domain.capabilities import words_for
from agent.domain.clock import wire_time
from agent.domain.commands import RecordToolCall, ToolCallPatch
from agent.domain.decisions import card_digest, card_status
from agent.domain.model_calls import Json
from agent.domain.questions import assumed, summary
from agent.domain.results import denial
from agent.domain.runs import Run
from agent.domain.snapshots import ToolCall
from agent.domain.states import ApprovalMode, ToolCallDecision, ToolCallStatus, ToolType
from agent.domain.transcript import refusal
from agent.errors import NotFound
from agent.flows import events
from agent.flows.answers import Told, plain_message
from agent.flows.handing import lock
from agent.flows.journal import Unit
from agent.flows.preflight import Card
from agent.flows.proposing import UNDER_WAY, Request, propose
from agent.flows.tools import Admitted, ToolResult
from agent.store.base import AgentStore

STORED_AS: Mapping[str, ToolType] = {"action": ToolType.ACTION, "ask": ToolType.ACTION}
QUESTIONS = frozenset({"ask"})  # the user answers them
REMEMBERED = "remembered"

Call = dict[str, Any]
Payload = dict[str, Json]


class CallRows:
    """Writes the rows of one answer's calls.

    `terminal` and `mode` are as the run recorded them; a run from before `terminal` was goes by today's declarations.
    """

    def __init__(self, store: AgentStore, run: Run, told: Told, *, terminal: Collection[str] | None, mode: str) -> None:
        self.store, self.run, self.calls = store, run, list(told["toolCalls"])
        self._message_id: str = told["messageId"]
        self._terminal, self._mode = terminal, mode

    def refuse(self, call: Call, failure: str, *, known: bool) -> Payload:
        """A call that fails before it runs; the name of a tool that does not exist is the model's own word."""
        self._record(call, call["input"], ToolCallStatus.FAILED, error=failure)
        self._tell(call if known else {**call, "name": None}, ToolCallStatus.FAILED)
        return {"kind": call["kind"], "branch": "refused", "failure": failure}

    def begin(self, call: Call, allowed: Admitted) -> Payload:
        """A call that nobody has to decide."""
        self._record(call, _dumped(allowed.input), ToolCallStatus.RUNNING, executed_by_ref=self.run.actor.ref)
        return {"kind": call["kind"], "branch": "run", "terminal": self._is_terminal(allowed)}

    def ask(self, call: Call, given: Payload) -> Payload:
        """Questions to the user, who is the only one to answer them."""
        seconds = agent_settings().ask_ttl_seconds
        ttl = None if seconds is None else timedelta(seconds=seconds)
        deadline = Requirement(required=True, ttl=ttl).deadline(self.store.clock())
        waits = {"approver": REQUESTER, "expires_at": deadline}
        self._record(call, given, ToolCallStatus.PENDING_APPROVAL, **waits)
        return {"kind": call["kind"], "branch": "ask", "terminal": False, **given}

    def decision(self, unit: Unit, call: Call) -> Payload | None:
        """Record what was decided about a call that waits; None while nobody has."""
        name, row = f"await:{call['id']}", None
        if not unit.holds(name):
            row = self.store.get_tool_call(call["id"])
            if row is None:
                raise NotFound  # with its conversation
            if row.decision is None:
                return None
        record = self.answered if call["kind"] in QUESTIONS else self.decided
        return cast(Payload, unit.write(name, record, call, row))

    def answered(self, call: Call, row: ToolCall | None) -> Payload:
        """What the user said, with the defaults that stand for what they did not say."""
        assert row is not None
        if row.decision == ToolCallDecision.EXPIRED:
            return self.decided(call, row)
        questions: list[dict[str, Any]] = row.input["questions"]
        taken = assumed(questions, row.answers or {})
        output: Payload = {
            "answers": taken.answers,
            "skipped": row.decision == ToolCallDecision.SKIPPED,
            "defaulted": taken.defaulted,
            "summary": summary(questions, taken.answers),
            "answeredBy": row.executed_by_ref,
            "answeredVia": row.decided_via,
        }
        self.store.update_tool_call(call["id"], ToolCallPatch(output=output))
        self._tell(call, ToolCallStatus(row.status))
        return {"status": str(row.decision), "output": output}

    def prepared(self, call: Call, allowed: Admitted, found: Card | ToolResult) -> Payload:
        """An action after its preflight: settled, to run, or waiting for a person."""
        mode = allowed.offered.tool.approval_mode or self._mode
        if isinstance(found, Card):
            told = self._carded(call, allowed, found, mode)
        else:
            told = self.settle_early(call, allowed, found)
        return {"kind": call["kind"], "mode": mode, **told}

    def decided(self, call: Call, row: ToolCall | None) -> Payload:
        """What was decided; a refusal settles the call."""
        assert row is not None
        told: Payload = {
            "status": card_status(row),
            "approver": row.approver,
            "decidedBy": row.executed_by_ref,
            "decidedVia": row.decided_via,
            "remember": row.remember or None,
            "reason": row.decision_reason,
        }
        told = {name: value for name, value in told.items() if value is not None}
        if row.decision == ToolCallDecision.APPROVED:
            return told
        self._tell(call, ToolCallStatus(row.status))
        return {**told, **refusal(row.status, row.decision_reason)}

    def fail(self, call: Call, failure: str) -> Payload:
        """A call that was to run and cannot any more."""
        self.store.update_tool_call(call["id"], ToolCallPatch(status=ToolCallStatus.FAILED, error=failure))
        self._tell(call, ToolCallStatus.FAILED)
        return {"error": failure, "ms": 0}

    def settle(self, call: Call, outcome: ToolResult, *, asked: bool, terminal: bool) -> Payload:
        """The outcome of a body; `asked`: somebody had allowed it."""
        done = ToolCallStatus.EXECUTED if asked else ToolCallStatus.AUTO_EXECUTED
        status = done if outcome.succeeded else ToolCallStatus.FAILED
        self.store.update_tool_call(
            call["id"],
            ToolCallPatch(
                status=status,
                output=outcome.output,
                error=outcome.detail or outcome.error or outcome.denied,
                execution_ms=outcome.ms,
            ),
        )
        self._tell(call, status, ms=outcome.ms)
        return {
            **_outcome(outcome),
            "ms": outcome.ms,
            "ui": [*outcome.ui, *_spoken(call["id"], outcome.text)],
            "terminal": terminal,
        }

    def save(self, results: list[dict[str, Any]]) -> None:
        """Keep the results on the message, all that there are so far."""
        self.store.set_message_tool_results(self._message_id, results)

    def close(self, components: list[dict[str, Any]], *, terminal: bool, proposed: bool) -> Payload:
        """The outputs of the whole step."""
        if components and "message_ui" in self.store.capabilities:
            self.store.set_message_ui(self._message_id, components)
        ends = {"terminal": terminal, **({"proposed": True} if proposed else {})}
        words = words_for(components, self.run.input.get("uiCapabilities"))
        if not words:
            return {"messageIds": [self._message_id], **ends}
        said = plain_message(self.run, words)
        self.store.append_message(said)
        events.message_stored(self.store, said, actor=self.run.actor, thread_id=self.run.thread_id)
        return {"messageIds": [self._message_id, str(said.id)], "words": words, **ends}

    def hold(self) -> None:
        """Lock the thread before its calls, where words for components may become a message of it."""
        if self.run.input.get("uiCapabilities") is not None:
            lock(self.store, self.run.thread_id)

    def _is_terminal(self, allowed: Admitted) -> bool:
        tool = allowed.offered.tool
        return tool.terminal if self._terminal is None else tool.name in self._terminal

    def _tell(self, call: Call, status: ToolCallStatus, *, ms: int | None = None) -> None:
        stored_as = STORED_AS.get(call["kind"], ToolType.READ)
        events.tool_settled(self.store, self.run, call, tool_type=stored_as, status=status, ms=ms)

    def _carded(self, call: Call, allowed: Admitted, card: Card, mode: str) -> Payload:
        given, requirement, terminal = _dumped(allowed.input), card.requirement, self._is_terminal(allowed)
        if not requirement.required:
            self._record(call, given, ToolCallStatus.RUNNING, executed_by_ref=self.run.actor.ref)
            return {"branch": "run", "terminal": terminal}
        asked: dict[str, Any] = {"approver": requirement.approver, "confirmation": card.confirmation}
        if self._is_remembered(call, card):
            decided = {"decision": ToolCallDecision.REMEMBERED, "decided_via": REMEMBERED}
            actor = {"executed_by_ref": self.run.actor.ref}
            self._record(call, given, ToolCallStatus.RUNNING, **asked, **decided, **actor)
            return {"branch": "run", "terminal": terminal, "remembered": True, **asked}
        deadline = requirement.deadline(self.store.clock())
        waits = {**asked, "four_eyes": requirement.four_eyes, "expires_at": deadline}
        named: Payload = {"terminal": terminal}
        branch, subject = "approval", str(call["id"])
        if mode == ApprovalMode.INDEPENDENT:
            made = propose(self.store, self._request(call, given), allowed.offered.tool, card, deadline)
            if made is None:
                return self._refused_proposal(call, given)
            named, branch, subject = {**named, "proposalId": made}, "proposed", made
            self._record(call, given, ToolCallStatus.PROPOSED, **waits, proposal_id=made)
            self._tell(call, ToolCallStatus.PROPOSED)
        else:
            self._record(call, given, ToolCallStatus.PENDING_APPROVAL, **waits)
        told: Payload = {
            "branch": branch,
            **named,
            **asked,
            "digest": card_digest(subject, call["name"], given, card.confirmation, requirement.approver),
            "fourEyes": requirement.four_eyes or None,
            "deadline": None if deadline is None else wire_time(deadline),
        }
        return {name: value for name, value in told.items() if value is not None}

    def _request(self, call: Call, given: Json) -> Request:
        return Request(run=self.run, message_id=self._message_id, call_id=call["id"], raw=call["input"], input=given)

    def _refused_proposal(self, call: Call, given: Json) -> Payload:
        self._record(call, given, ToolCallStatus.FAILED, error=UNDER_WAY)
        self._tell(call, ToolCallStatus.FAILED)
        return {"branch": "refused", "failure": UNDER_WAY}

    def _is_remembered(self, call: Call, card: Card) -> bool:
        """Whether an approval of the same approver stands for this call too; under four eyes none does."""
        if card.requirement.four_eyes:
            return False
        approver = card.requirement.approver
        return call["name"] in self.store.remembered_approvals(self.run.thread_id, approver=approver)

    def settle_early(self, call: Call, allowed: Admitted, found: ToolResult) -> Payload:
        """A call whose result is there before anything ran."""
        given = _dumped(allowed.input)
        failure = found.error or found.denied
        if failure is not None:
            self._record(call, given, ToolCallStatus.FAILED, error=found.detail or failure)
            self._tell(call, ToolCallStatus.FAILED)
            return {"branch": "refused" if found.error else "denied", "failure": failure}
        actor = self.run.actor.ref
        self._record(call, given, ToolCallStatus.AUTO_EXECUTED, output=found.output, executed_by_ref=actor)
        self._tell(call, ToolCallStatus.AUTO_EXECUTED)
        shown = [*found.ui, *_spoken(call["id"], found.text)]
        terminal = self._is_terminal(allowed)
        return {"branch": "completed", "output": found.output, "ui": shown, "terminal": terminal}

    def _record(self, call: Call, given: Json, status: ToolCallStatus, **columns: Any) -> None:  # noqa: ANN401
        run = self.run
        self.store.record_tool_call(
            RecordToolCall(
                id=call["id"],
                provider_call_id=call["providerCallId"],
                message_id=self._message_id,
                thread_id=run.thread_id,
                run_id=run.id,
                actor_ref=run.actor.ref,
                tenant_ref=run.actor.tenant_ref,
                agent_name=run.agent_name,
                tool_name=call["name"],
                tool_type=STORED_AS.get(call["kind"], ToolType.READ),
                input=given,
                status=status,
                parent_call_id=run.parent_call_id,
                **columns,
            )
        )
        if status in {ToolCallStatus.PENDING_APPROVAL, ToolCallStatus.PROPOSED}:
            events.approval_requested(self.store, run, call, proposal_id=columns.get("proposal_id"))


def _dumped(arguments: BaseModel) -> Json:
    return arguments.model_dump(mode="json")


def _outcome(outcome: ToolResult) -> Payload:
    if outcome.denied is not None:
        return denial(outcome.denied)
    return {"output": outcome.output} if outcome.error is None else {"error": outcome.error}


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
