"""The system block of a run: resolved once, journaled, named by its hash (spec 03 §5)."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from agent.db import in_tool
from agent.registry import AgentDefinition, PromptContext

JOINT = "\n\n"


def is_static(definition: AgentDefinition) -> bool:
    """Whether nothing has to be called to know the prompt."""
    return isinstance(definition.prompt, str) and not definition.contributors


def static_parts(definition: AgentDefinition) -> list[str]:
    return [definition.prompt] if isinstance(definition.prompt, str) else []


async def resolve_parts(definition: AgentDefinition, context: PromptContext) -> list[str]:
    """The agent's own prompt, then each contributor's text; a contributor that gives None is left out."""
    sources = [definition.prompt, *definition.contributors]
    parts = [source if isinstance(source, str) else await _called(source, context) for source in sources]
    return [part for part in parts if part is not None]


def prompt_hash(parts: Sequence[str]) -> str:
    """SHA-256 hex of the parts joined: it names the prompt's version, not the request."""
    return hashlib.sha256(JOINT.join(parts).encode(errors="surrogatepass")).hexdigest()


async def _called(source: Callable[[PromptContext], Any], context: PromptContext) -> str | None:
    if inspect.iscoroutinefunction(source):
        text = await source(context)
    else:
        text = await in_tool(source, context)
    return None if text is None else str(text)
