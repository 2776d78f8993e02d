"""How much of somebody's limits is used, for the console and its API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agent.actors import DjangoBackgroundResolver
from agent.conf import agent_settings
from agent.domain.actor import Actor
from agent.errors import NotFound
from agent.models.tenants import Tenants
from agent.spi import QuotaPolicy


def report_of(ref: str, tenants: Tenants) -> Mapping[str, Any]:
    """The report of a person, empty where no quota is set; `NotFound` for one of another tenant."""
    if agent_settings().quota is None:
        return {"windows": []}
    actor = _actor(ref)
    if tenants is not None and actor.tenant_ref not in tenants:
        raise NotFound
    return cast("QuotaPolicy", agent_settings().quota_policy).report(actor)


def _actor(ref: str) -> Actor:
    """Who that is now; somebody whom the site's resolver does not know has the limits of no role."""
    resolver = agent_settings().background_actor_resolver
    found = cast("DjangoBackgroundResolver", resolver).resolve(ref, None)
    return found or Actor(ref)
