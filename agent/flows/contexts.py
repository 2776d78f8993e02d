"""What a host's code is told of the run it works for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.domain.actor import Actor
from agent.domain.model_calls import CancelFlag, Frame
from agent.domain.processing import ProcessorContext, Subject
from agent.domain.proposals import Proposal
from agent.domain.runs import Run
from agent.flows.prompt import Persona
from agent.registry import OfferContext, PromptContext, StoreReads, ToolContext


def for_offer(run: Run, persona: Persona | None) -> OfferContext:
    allowed = None if persona is None or persona["allowedTools"] is None else frozenset(persona["allowedTools"])
    return OfferContext(**_told(run), allowed_tools=allowed, ui_capabilities=run.input.get("uiCapabilities"))


def for_prompt(run: Run) -> PromptContext:
    return PromptContext(**_told(run))


def for_processor(run: Run, subject: Subject) -> ProcessorContext:
    return ProcessorContext(**_told(run), subject=subject)


def for_tool(
    run: Run, call_id: str, *, store: StoreReads, cancelled: CancelFlag, emit: Callable[[Frame], None]
) -> ToolContext:
    return ToolContext(
        **_told(run),
        ui_capabilities=run.input.get("uiCapabilities"),
        tool_call_id=call_id,
        store=store,
        request_id=run.input.get("requestId"),
        cancelled=cancelled,
        emit=emit,
    )


def for_proposal(proposal: Proposal, actor: Actor, *, store: StoreReads) -> ToolContext:
    """An execution long after the turn: the recorded context, and today's actor."""
    asked, recorded = proposal.asked, proposal.asked.execution_context
    return ToolContext(
        actor=actor,
        thread_id=asked.scope.thread_id,
        run_id=asked.origin_run_id,
        tool_call_id=asked.origin_tool_call_id,
        store=store,
        request_id=recorded["requestId"],
        agent_name=recorded.get("agentName"),
        persona=recorded.get("persona"),
        page_context=recorded.get("pageContext"),
        ui_capabilities=recorded.get("uiCapabilities"),
    )


def for_gates(ctx: ToolContext, allowed_tools: frozenset[str] | None) -> OfferContext:
    """What the gates are told right before a tool is called outside of a turn."""
    return OfferContext(
        actor=ctx.actor,
        agent_name=ctx.agent_name,
        thread_id=ctx.thread_id,
        run_id=ctx.run_id,
        persona=ctx.persona,
        allowed_tools=allowed_tools,
        page_context=ctx.page_context,
        ui_capabilities=ctx.ui_capabilities,
    )


def _told(run: Run) -> dict[str, Any]:
    return {
        "actor": run.actor,
        "agent_name": run.agent_name,
        "thread_id": run.thread_id,
        "run_id": run.id,
        "persona": run.persona,
        "page_context": run.input.get("pageContext"),
        "host": run.input.get("hostContext"),
    }
