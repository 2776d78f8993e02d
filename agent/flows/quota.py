"""Whether an actor's limits are used up (spec 08 §4), where the installation limits anything."""

from __future__ import annotations

from typing import cast

from agent.conf import agent_settings
from agent.domain.actor import Actor
from agent.errors import OverQuota
from agent.spi import QuotaPolicy


def is_limited() -> bool:
    return agent_settings().quota is not None


def exceeded(actor: Actor) -> OverQuota | None:
    """What the actor has to be told, if anything; asks the host's policy."""
    if not is_limited():
        return None
    blocked = cast("QuotaPolicy", agent_settings().quota_policy).report(actor).get("blocked")
    return OverQuota(blocked.get("reason"), period=blocked["period"]) if blocked else None
