"""Asking another agent (spec 11 §6): a child run, begun in the commit of its call, whose end is the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent.conf import agent_settings
from agent.domain.ids import new_id
from agent.domain.model_calls import Frame
from agent.domain.results import Payload
from agent.domain.runs import Run
from agent.domain.states import TERMINAL_RUN, RunStatus, RunTrigger
from agent.flows import catalogue, events, retelling
from agent.flows.call_rows import Call, CallRows
from agent.flows.failures import told_error
from agent.flows.families import answer_of
from agent.flows.journal import Unit
from agent.flows.starts import Asked, Parent, Send, begin
from agent.flows.takeover import shown_of
from agent.flows.tools import Admitted, ToolResult, failed
from agent.registry import Handoff
from agent.store.base import AgentStore

AWAITED = "delegate"  # the branch of a call that waits for its child
CYCLE = 'The agent "{agent}" is asked already in this chain of agents, and is not asked again. Do it without.'
DEPTH = "Agents are asking agents {depth} deep already, which is as deep as they may. Do it without."
STOPPED = 'The agent "{agent}" was stopped before it had an answer.'
FAILED = 'The agent "{agent}" could not answer. {message}'
NOTE = "It has begun. Its answer will come as a message of its own; do not wait for it."


def hand_over(rows: CallRows, call: Call, allowed: Admitted) -> dict[str, Any]:
    """The row of a call that asks an agent, with the child run; a chain that is too long is told to the model."""
    handoff = allowed.offered.tool.handoff
    assert handoff is not None
    if (refusal := _refusal(rows.store, rows.run, handoff.agent)) is not None:
        return rows.refuse(call, refusal, known=True)
    child_id = new_id()
    told = {"detached": handoff.detached, "agent": handoff.agent, "runId": child_id}
    if handoff.detached:
        started = ToolResult(output={**told, "status": "started", "note": NOTE})
        payload = {"kind": call["kind"], **rows.settle_early(call, allowed, started)}
    else:
        payload = {**rows.begin(call, allowed), "branch": AWAITED}
    _begin(rows, call, handoff, child_id, task=allowed.input.model_dump()["task"])
    return {**payload, **told}


@dataclass(frozen=True, slots=True)
class Returned:
    """What a child gave, as it was recorded, and what its worker had not told when it was gone."""

    payload: Payload
    untold: Sequence[Frame] = ()


def returned(unit: Unit, rows: CallRows, call: Call, persisted: Payload) -> Returned | None:
    """Record the end of the child that a call waits for, and what it gave; None while it is at work."""
    name, child = f"await:{call['id']}", None
    if not unit.holds(name):
        child = rows.store.get_run(persisted["runId"])
        if child is not None and child.status not in TERMINAL_RUN:
            return None
    ended = unit.write(name, _ended, rows.store, child, persisted["agent"])
    result = ToolResult(output={"text": ended["text"]}) if "text" in ended else failed("delegate_failed", ended["why"])
    payload: Payload = unit.write(f"tool:{call['id']}", rows.settle, call, result, asked=False, terminal=False)
    return Returned(payload, () if child is None else _untold(rows.store, child, call))


def _refusal(store: AgentStore, run: Run, agent: str) -> str | None:
    """Why the agent may not be asked from here: first the cycle, then the depth."""
    settings = agent_settings()
    if [*_chain(store, run)].count(agent) >= settings.delegation_max_appearances:
        return CYCLE.format(agent=agent)
    if run.depth >= settings.delegation_max_depth:
        return DEPTH.format(depth=run.depth)
    return None


def _chain(store: AgentStore, run: Run | None) -> Iterator[str | None]:
    """The agents from this run up to the one that a person asked."""
    while run is not None:
        yield run.agent_name
        run = None if run.parent_run_id is None else store.get_run(run.parent_run_id)


def _begin(rows: CallRows, call: Call, handoff: Handoff, child_id: str, *, task: str) -> None:
    run, agent, told = rows.run, handoff.agent, rows.run.input
    send = Send(
        message=task,
        agent=agent,
        transient=True,
        page_context=told.get("pageContext"),
        ui_capabilities=told.get("uiCapabilities"),
        host_context=told.get("hostContext"),
        request_id=told.get("requestId"),
    )
    asked = Asked(
        actor=run.actor,
        send=send,
        run_id=child_id,
        agent_name=agent,
        model_id=catalogue.resolve_model(agent, None, None),
        persona=catalogue.resolve_persona(agent, None, None),
        trigger=RunTrigger.DETACHED if handoff.detached else RunTrigger.DELEGATE,
        parent=Parent(
            run_id=run.id,
            call_id=call["id"],
            stream_run_id=None if handoff.detached else run.stream_run_id,
            depth=run.depth + 1,
        ),
    )
    begin(rows.store, asked)
    events.delegated(rows.store, run, call, child_run_id=child_id, agent=agent, detached=handoff.detached)


def _untold(store: AgentStore, child: Run, call: Call) -> list[Frame]:
    """The text of a step is there before its commit, so a second copy of what may be lacking changes nothing."""
    return [{"parentId": call["id"], **frame} for frame in retelling.untold(store.steps(child.id), shown_of(child))]


def _ended(store: AgentStore, child: Run | None, agent: str) -> dict[str, Any]:
    """How the child ended: its last words, or why there are none."""
    if child is not None and child.status == RunStatus.COMPLETED:
        return {"status": str(child.status), "text": answer_of(store, child)}
    if child is not None and child.status == RunStatus.FAILED:
        why = FAILED.format(agent=agent, message=told_error(child)["message"])
    else:
        why = STOPPED.format(agent=agent)
    return {"status": str(RunStatus.CANCELLED if child is None else child.status), "why": why}
