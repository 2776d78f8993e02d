"""Personas as a host declares them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from agent.registry.book import registry
from agent.registry.declared import Origin, texts
from agent.registry.definitions import PersonaDefinition


def persona(
    id: str,  # noqa: A002 - the word of the wire and of the tables
    label: str,
    prompt: str | Callable[[str], str],
    *,
    allowed_tools: Iterable[str] | None = None,
    aliases: Sequence[str] = (),
    roles: Sequence[str] = (),
) -> PersonaDefinition:
    """Declare a persona: a text replaces the agent's base prompt, a callable is given it and wraps it."""
    caller = sys._getframe(1)
    definition = PersonaDefinition(
        id=id,
        label=label,
        prompt=prompt,
        allowed_tools=None if allowed_tools is None else frozenset(texts(allowed_tools) or ()),
        aliases=texts(aliases) or (),
        roles=texts(roles) or (),
        origin=Origin(caller.f_globals.get("__name__", "?"), id, caller.f_lineno),
    )
    registry.add_persona(definition)
    return definition
