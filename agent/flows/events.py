"""What the flows tell of a run (spec 03 §11): each is called in the unit that makes it true, and sent after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from agent import signals
from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage
from agent.domain.ledger import UsageEntry
from agent.domain.proposals import Proposal
from agent.domain.runs import Run, RunLease
from agent.domain.snapshots import ToolCall
from agent.domain.states import RunStatus
from agent.flows import personal_outcomes
from agent.signals import Event, Fact
from agent.sinks import notices
from agent.sinks.broadcast import broadcast
from agent.sinks.notices import Reason
from agent.store.base import AgentStore

MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a run has done so far: its model calls that were answered, and their tokens."""

    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, entries: Iterable[UsageEntry]) -> Work:
        """As the ledger has it; the rows of calls that broke off are not answers."""
        work = cls()
        for entry in entries:
            if (entry.step_key or "").startswith("llm:") and "#" not in str(entry.step_key):
                work = work.and_answer({"inputTokens": entry.input_tokens, "outputTokens": entry.output_tokens})
        return work

    def and_answer(self, usage: Mapping[str, Any]) -> Work:
        """With one more answer, whose usage is that of its message."""
        return replace(
            self,
            steps=self.steps + 1,
            input_tokens=self.input_tokens + usage.get("inputTokens", 0),
            output_tokens=self.output_tokens + usage.get("outputTokens", 0),
        )


def run_started(store: AgentStore, run: Run, *, attempt: int) -> None:
    """Once a run, when a worker has begun with it."""
    _tell(store, "run.started", run, modelId=run.model_id, trigger=run.trigger, attempt=attempt)


def message_stored(store: AgentStore, said: AppendMessage, *, actor: Actor, thread_id: str) -> None:
    payload = _of_actor(actor) | {"runId": said.run_id, "threadId": thread_id, "agentName": said.agent_name}
    calls = len(said.tool_calls or ())
    _after_commit(store, "message", payload | {"messageId": said.id, "role": str(said.role), "toolCalls": calls})


def tool_settled(
    store: AgentStore, run: Run, call: Mapping[str, Any], *, tool_type: str, status: str, ms: int | None = None
) -> None:
    """A call that is over; `ms` None: it never ran."""
    _tell(store, "tool-call", run, **_of_call(call), toolType=str(tool_type), status=str(status), durationMs=ms)


def tool_repeated(store: AgentStore, run: Run, call: Mapping[str, Any], *, attempt: int) -> None:
    """A call that was begun before a crash is about to run again, with the same idempotency key."""
    _tell(store, "tool.retry", run, **_of_call(call), attempt=attempt)


def delegated(
    store: AgentStore, run: Run, call: Mapping[str, Any], *, child_run_id: str, agent: str, detached: bool
) -> None:
    """Another agent was asked; `detached`: nobody waits for its answer."""
    _tell(store, "delegated", run, **_of_call(call), childRunId=child_run_id, agent=agent, detached=detached)


def approval_requested(store: AgentStore, run: Run, call: Mapping[str, Any], *, proposal_id: str | None) -> None:
    """Somebody is asked: about the call, or about the proposal that it became."""
    _tell(store, "approval.requested", run, **_of_call(call), proposalId=proposal_id)
    personal_outcomes.requested(store, run, call_id=call["id"], tool=call["name"], proposal_id=proposal_id)


def call_decided(store: AgentStore, call: ToolCall, *, decision: str, via: str) -> None:
    payload = {"actorRef": call.actor_ref, "tenantRef": call.tenant_ref, "runId": call.run_id}
    payload |= {"threadId": call.thread_id, "agentName": call.agent_name, "toolCallId": call.id}
    told = {"toolName": call.tool_name, "proposalId": None, "decision": decision, "via": via}
    _after_commit(store, "approval.decided", payload | told)
    personal_outcomes.settled(store, thread_id=call.thread_id, call_id=call.id, decision=decision)


def proposal_decided(store: AgentStore, proposal: Proposal) -> None:
    """A person's decision, or what a person said became of an execution that was lost."""
    asked, scope, execution = proposal.asked, proposal.scope, proposal.execution
    audit = execution.settled_by[-1] if execution is not None and execution.settled_by else proposal.audit
    payload = {"actorRef": scope.actor_ref, "tenantRef": scope.tenant_ref, "runId": asked.origin_run_id}
    payload |= {"threadId": scope.thread_id, "agentName": asked.execution_context.get("agentName")}
    payload |= {"toolCallId": asked.origin_tool_call_id, "toolName": asked.tool_name, "proposalId": asked.id}
    told = {"decision": str(proposal.decision), "via": None if audit is None else audit.via}
    _after_commit(store, "approval.decided", payload | told)
    call_id, decision = asked.origin_tool_call_id, str(proposal.decision)
    personal_outcomes.settled(store, thread_id=scope.thread_id, call_id=call_id, decision=decision)


def run_finished(store: AgentStore, run: Run, status: str, work: Work, *, lease: RunLease | None) -> None:
    """The end of a run that completed or was cancelled."""
    _tell(store, "run.finished", run, status=str(status), **_counts(store, run, work, lease))
    if status == RunStatus.COMPLETED:
        personal_outcomes.answered(store, run)
    else:
        personal_outcomes.failed(store, run, str(status))
    _settled(store, run)


def run_failed(store: AgentStore, run: Run, code: str | None, work: Work, *, lease: RunLease | None) -> None:
    _tell(store, "run.failed", run, code=code, **_counts(store, run, work, lease))
    personal_outcomes.failed(store, run, code)
    _settled(store, run)


def quota_exceeded(
    store: AgentStore, actor: Actor, period: str | None, *, thread_id: str | None, run_id: str | None = None
) -> None:
    """Told at once: whoever is over the limit has written nothing."""
    payload = _of_actor(actor) | {"runId": run_id, "threadId": thread_id, "period": period}
    _send(Event(event="quota.exceeded", ts=store.clock(), payload=payload))


def thread_changed(store: AgentStore, thread_id: str, reason: Reason) -> None:
    """For whoever has the conversation open."""
    store.on_commit(partial(notices.thread_changed, thread_id, reason))


def _settled(store: AgentStore, run: Run) -> None:
    if not run.depth:  # one that another run awaits holds no thread
        thread_changed(store, run.thread_id, "run-settled")


def _counts(store: AgentStore, run: Run, work: Work, lease: RunLease | None) -> dict[str, Fact]:
    started_at = run.started_at if lease is None or lease.started_at is None else lease.started_at
    return {
        "steps": work.steps,
        "inputTokens": work.input_tokens,
        "outputTokens": work.output_tokens,
        "attempt": run.attempt if lease is None else lease.attempt,
        "durationMs": None if started_at is None else _ms(started_at, store.clock()),
    }


def _ms(start: datetime, end: datetime) -> int:
    return max(0, (end - start) // MILLISECOND)


def _of_actor(actor: Actor) -> dict[str, Fact]:
    return {"actorRef": actor.ref, "tenantRef": actor.tenant_ref}


def _of_call(call: Mapping[str, Any]) -> dict[str, Fact]:
    return {"toolCallId": call["id"], "toolName": call["name"]}


def _tell(store: AgentStore, event: str, run: Run, **facts: Fact) -> None:
    of_run: dict[str, Fact] = {"runId": run.id, "threadId": run.thread_id, "agentName": run.agent_name}
    _after_commit(store, event, _of_actor(run.actor) | of_run | facts)


def _after_commit(store: AgentStore, event: str, payload: Mapping[str, Fact]) -> None:
    store.on_commit(partial(_now, store, event, payload))


def _now(store: AgentStore, event: str, payload: Mapping[str, Fact]) -> None:
    _send(Event(event=event, ts=store.clock(), payload=payload))


def _send(event: Event) -> None:
    signals.send(event)
    broadcast(event)
