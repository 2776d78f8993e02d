"""Carrying out what was approved (spec 07 §10): claimed, checked against today, run with a stable key, settled."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import cast

from pydantic import BaseModel

from agent.conf import agent_settings
from agent.db import in_db
from agent.domain.actor import Actor
from agent.domain.canonical import canonical_json
from agent.domain.commands import UNSET, ToolCallPatch
from agent.domain.outcomes import outcome_message
from agent.domain.proposals import Answer, Proposal, Settlement
from agent.domain.redaction import redacted_trace
from agent.domain.states import ToolCallDecision
from agent.flows import contexts, events, outcomes, proposals
from agent.flows.handing import lock
from agent.flows.owners import this_process
from agent.flows.preflight import perform
from agent.flows.tools import ToolResult, offer
from agent.registry import InvalidInput, ToolContext, ToolDefinition, registry
from agent.spi import BackgroundActorResolver
from agent.store import get_store, in_store
from agent.store.proposals import SettlesAndTells

logger = logging.getLogger("agent.proposals")

NOBODY = "The person who asked for it is not active any more, so nothing was done."
UNRESOLVED = "Nobody could say who asked for it, so nothing was done."
NO_AGENT = "The agent that asked for it does not exist any more, so nothing was done."
NO_PERSONA = "The persona that asked for it does not exist any more, so nothing was done."
NO_TOOL = "The action does not exist any more, or the person who asked for it may not take it; nothing was done."
CHANGED = "The action means something else today than what was approved, so nothing was done."


class _Refused(Exception):
    """What was approved cannot run today; the text is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    tool: ToolDefinition
    input: BaseModel
    context: ToolContext


async def work() -> int:
    """Execute what waits, `PROPOSAL_CONCURRENCY` at a time, until nothing does; how many."""
    slots = (_slot() for _ in range(agent_settings().proposal_concurrency))
    return sum(await asyncio.gather(*slots))


async def execute(proposal_id: str) -> bool:
    """Execute this one; False when it is another's, or not to be executed."""
    held = await in_store(_claim, proposal_id)
    if held is None:
        return False
    await _carry_out(held)
    return True


async def sweep() -> int:
    """Once: expire what is due, execute up to `PROPOSAL_CONCURRENCY`, tell outcomes; how much was done."""
    expired = await in_store(proposals.expire_due)
    slots = range(agent_settings().proposal_concurrency)
    done = await asyncio.gather(*(execute_next() for _ in slots))
    return expired + sum(done) + await in_store(outcomes.admit_due)


async def _slot() -> int:
    done = 0
    while await execute_next():
        done += 1
    return done


async def execute_next() -> bool:
    """Execute the oldest that waits; False when nothing does."""
    held = await in_store(_claim_next)
    if held is None:
        return False
    await _carry_out(held)
    return True


def _claim(proposal_id: str) -> Proposal | None:
    store = get_store()
    proposal = store.find_proposal(proposal_id)
    if proposal is None:
        return None
    answer = store.claim_proposal(proposal.scope, proposal_id, lease_ms(), this_process(), most=_most())
    return answer.proposal if answer.applied else None


def _claim_next() -> Proposal | None:
    store = get_store()
    if "proposal_worker" not in store.capabilities:
        return None
    return store.claim_next_proposal(this_process(), lease_ms(), store.clock(), most=_most())


def lease_ms() -> int:
    return agent_settings().proposal_lease_seconds * 1000


def _most() -> int:
    return agent_settings().run_max_recoveries + 1


async def _carry_out(held: Proposal) -> None:
    """Run it and settle it; with the lease lost the result is dropped, for another worker has it."""
    task = asyncio.ensure_future(_outcome(held))
    keeping = asyncio.ensure_future(_keep_lease(held))
    await asyncio.wait({task, keeping}, return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        logger.warning("proposal %s was lost to another worker; its result is dropped", held.id)
        return
    keeping.cancel()
    try:
        end = task.result()
    except Exception as error:  # of ours, or of the database: the lease lapses, and its tool says what that means
        logger.warning("proposal %s could not be carried out: %s", held.id, redacted_trace(error))
        return
    await in_store(_settle, held, end)


async def _keep_lease(held: Proposal) -> None:
    """Renew each third of the lease; returns when it is lost."""
    token, generation = _fence(held)
    while True:
        await asyncio.sleep(lease_ms() / 3000)
        try:
            answer = await in_store(get_store().renew_proposal, held.scope, held.id, token, generation, lease_ms())
        except Exception as error:
            logger.warning("the lease of proposal %s was not renewed: %s", held.id, redacted_trace(error))
            return
        if not answer.applied:
            return


def _settle(held: Proposal, end: Settlement) -> Answer:
    store, fence = get_store(), _fence(held)
    with store.atomic():
        if isinstance(store, SettlesAndTells):
            answer = store.settle_and_tell(held.scope, held.id, *fence, end, outcome_message)
        else:
            lock(store, held.scope.thread_id)
            answer = store.settle_proposal(held.scope, held.id, *fence, end)
            if answer.applied and answer.proposal is not None:
                outcomes.tell(store, answer.proposal)
        if answer.applied and answer.proposal is not None:
            _remember(answer.proposal)
            events.thread_changed(store, held.scope.thread_id, "outcome")
    if not answer.applied:
        logger.warning("proposal %s was lost to another worker; its result is dropped", held.id)
    return answer.status


def _remember(done: Proposal) -> None:
    """An approval that is to be remembered counts from now on, for the tool has been run."""
    audit = done.audit
    if audit is not None and audit.remember:
        remembered = ToolCallPatch(
            decision=ToolCallDecision.APPROVED, decided_via=audit.via, executed_by_ref=audit.actor_ref, remember=True
        )
        get_store().update_tool_call(done.asked.origin_tool_call_id, remembered)


def _fence(held: Proposal) -> tuple[str, int]:
    assert held.execution is not None
    assert held.execution.lease is not None
    return held.execution.lease.token, held.execution.generation


async def _outcome(held: Proposal) -> Settlement:
    try:
        ready = await _ready(held)
    except _Refused as refused:
        return Settlement(status="failed", error=str(refused))
    return _ended(await perform(ready.tool, ready.input, ready.context))


def _ended(result: ToolResult) -> Settlement:
    failure = result.error or result.denied
    if failure is not None:
        return Settlement(status="failed", error=failure)
    return Settlement(status="succeeded", result=result.output, text=result.text, ui=list(result.ui) or None)


async def _ready(held: Proposal) -> _Ready:
    """What was approved, as it may run now: today's person, declarations, gates and schema."""
    asked = held.asked
    actor = await in_db(_requester, held)
    context = contexts.for_proposal(held, actor, store=get_store())
    name, persona = asked.execution_context.get("agentName"), asked.execution_context.get("persona")
    if name is not None and registry.agent(name) is None:
        raise _Refused(NO_AGENT)
    allowed = None
    if persona is not None:
        declared = registry.persona(persona)
        if declared is None:
            raise _Refused(NO_PERSONA)
        allowed = declared.allowed_tools
    ctx = contexts.for_gates(context, allowed)
    offered = await offer(registry.definition(name), ctx=ctx, only=frozenset({asked.tool_name}))
    if not offered or offered[0].kind != "action":
        raise _Refused(NO_TOOL)
    return _Ready(tool=offered[0].tool, input=_same_input(offered[0].tool, held), context=context)


def _same_input(tool: ToolDefinition, held: Proposal) -> BaseModel:
    asked = held.asked
    try:
        given = tool.parse(asked.input if asked.preparation_input is UNSET else asked.preparation_input)
    except InvalidInput as error:
        raise _Refused(CHANGED) from error
    if canonical_json(given.model_dump(mode="json")) != canonical_json(asked.input):
        raise _Refused(CHANGED)
    return given


def _requester(held: Proposal) -> Actor:
    """Who that is today; roles and rights are theirs of today."""
    scope = held.scope
    resolver = cast("BackgroundActorResolver", agent_settings().background_actor_resolver)
    try:
        actor = resolver.resolve(scope.actor_ref, scope.tenant_ref)
    except Exception as error:
        logger.warning("the requester of proposal %s could not be resolved: %s", held.id, redacted_trace(error))
        raise _Refused(UNRESOLVED) from error
    if actor is None or not scope.is_of(actor):
        raise _Refused(NOBODY)
    return actor
