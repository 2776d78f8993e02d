"""Whose rows somebody of the staff may see: `AGENT["CONSOLE_SCOPE"]`, asked once a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from django.http import HttpRequest

from agent.conf import agent_settings
from agent.models.tenants import Tenants


def scope_of(request: HttpRequest) -> Tenants:
    """The tenants whose rows this request may see, in the console and in every table; None for all."""
    named = agent_settings().console_scope
    return None if named is None else cast(Callable[[HttpRequest], Tenants], named)(request)
