"""The quota without a database: read from whatever store there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.conf import agent_settings
from agent.domain import quota
from agent.domain.actor import Actor
from agent.domain.quota import Filled, Window
from agent.store import get_store


class InMemoryQuota:
    """Limits of a person, by the store's own sums; it knows neither tenants nor what open turns reserve."""

    def report(self, actor: Actor) -> Mapping[str, Any]:
        windows = quota.windows_for(agent_settings().quota or {}, actor)
        return quota.report([_filled(window, actor) for window in windows if not window.tenant])


def _filled(window: Window, actor: Actor) -> Filled:
    store, zone = get_store(), agent_settings().report_time_zone
    start, end = quota.starts(window.period, store.clock().astimezone(zone).date(), zone)
    return Filled(window=window, used=store.usage_between(actor.ref, start, end), open_runs=0, resets_at=end)
