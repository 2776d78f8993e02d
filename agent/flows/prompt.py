"""The system block of a run: resolved once, journaled, named by its hash (spec 03 §5)."""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from agent.conf import agent_settings
from agent.db import in_tool
from agent.domain.commands import RunStart
from agent.domain.runs import Run
from agent.registry import AgentDefinition, PromptContext, json_schema, registry

JOINT = "\n\n"
STAGES = "run:prompt-stages"

Source = str | Callable[[PromptContext], Any]

logger = logging.getLogger("agent.prompt")


class Persona(TypedDict):
    """The payload of `persona:resolve`: a run keeps the persona that it started with."""

    id: str
    label: str
    allowedTools: list[str] | None
    prompt: str | None  # None: it wraps the agent's own, which is resolved with the prompt


def resolved_persona(persona_id: str) -> Persona | None:
    """What the persona is today; None when it is not declared any more: the run goes on without."""
    found = registry.persona(persona_id)
    if found is None:
        logger.warning("persona %r is not declared any more; the run goes on without", persona_id)
        return None
    return Persona(
        id=found.id,
        label=found.label,
        allowedTools=None if found.allowed_tools is None else sorted(found.allowed_tools),
        prompt=found.prompt if isinstance(found.prompt, str) else None,
    )


def is_static(definition: AgentDefinition, persona: Persona | None) -> bool:
    """Whether nothing has to be called to know the prompt."""
    return isinstance(_base(definition, persona), str) and not definition.contributors


def static_parts(definition: AgentDefinition, persona: Persona | None) -> list[str]:
    base = _base(definition, persona)
    return [base] if isinstance(base, str) else []


async def resolve_parts(definition: AgentDefinition, persona: Persona | None, context: PromptContext) -> list[str]:
    """The agent's own prompt or its persona's, then each contributor's text; one that gives None is left out."""
    sources = [_base(definition, persona), *definition.contributors]
    parts = [source if isinstance(source, str) else await _called(source, context) for source in sources]
    return [part for part in parts if part is not None]


def _base(definition: AgentDefinition, persona: Persona | None) -> Source:
    """Part 1: a persona's text replaces the agent's, a callable persona wraps it."""
    if persona is None:
        return definition.prompt
    found = registry.persona(persona["id"])
    if persona["prompt"] is not None or found is None:
        return persona["prompt"] or definition.prompt
    if isinstance(definition.prompt, str):
        return found.prompt_from(definition.prompt)
    return _wrapped(definition.prompt, found.prompt_from)


def _wrapped(source: Callable[[PromptContext], Any], wrap: Callable[[str], str]) -> Source:
    async def both(context: PromptContext) -> str:
        return wrap(await _called(source, context) or "")

    return both


def stages(definition: AgentDefinition, run: Run, parts: list[str], *, answered: bool) -> dict[str, Any]:
    """What decides the shape of the run, so that later declarations cannot change it."""
    intake = definition.intake
    terminal = sorted(tool.name for tool in registry.tools_of(definition) if tool.terminal)
    steps = definition.max_steps or agent_settings().max_steps
    told = {"prompt": parts, "maxSteps": steps, "model": run.model_id, "terminalTools": terminal}
    asked = {"intake": intake.asked()} if intake is not None and intake.is_due(answered=answered) else {}
    return told | asked | _output(definition, run) | ({"quota": True} if agent_settings().quota is not None else {})


def _output(definition: AgentDefinition, run: Run) -> dict[str, Any]:
    """What is done to what a model is shown and to what it says; what may be asked next is for people."""
    kind, wanted = definition.output_type, None if run.depth else definition.follow_ups
    told = {
        "inputProcessors": [_name_of(each) for each in definition.input_processors],
        "outputProcessors": [_name_of(each) for each in definition.output_processors],
        "structured": None if kind is None else {"schema": json_schema(kind), "repairs": definition.output_repairs},
        "followUps": None if wanted is None else wanted.count,
    }
    return {name: value for name, value in told.items() if value}


def _name_of(processor: object) -> str:
    return str(getattr(processor, "__name__", type(processor).__name__))


def prompt_hash(parts: Sequence[str]) -> str:
    """SHA-256 hex of the parts joined: it names the prompt's version, not the request."""
    return hashlib.sha256(JOINT.join(parts).encode(errors="surrogatepass")).hexdigest()


def start_of(run: Run, digest: str) -> RunStart:
    """What a run is known to be once its prompt is."""
    return RunStart(
        prompt_hash=digest,
        agent_name=run.agent_name,
        model_id=run.model_id,
        persona=run.persona,
        parent_run_id=run.parent_run_id,
    )


async def _called(source: Callable[[PromptContext], Any], context: PromptContext) -> str | None:
    if inspect.iscoroutinefunction(source):
        text = await source(context)
    else:
        text = await in_tool(source, context)
    return None if text is None else str(text)
