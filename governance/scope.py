"""Whose rows somebody of the staff may see: `AGENT["CONSOLE_SCOPE"]`, asked once a request."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import cast

from django.http import HttpRequest

from agent.conf import agent_settings

Scope = Collection[str | None] | None


def scope_of(request: HttpRequest) -> Scope:
    """The tenants whose rows this request may see, None in it standing for rows without one; None for all."""
    named = agent_settings().console_scope
    return None if named is None else cast(Callable[[HttpRequest], Scope], named)(request)
