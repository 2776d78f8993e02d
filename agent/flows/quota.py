"""Asking how much of somebody's limits is left: at send, at the start of a queued message, between steps."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, cast

from agent.conf import agent_settings
from agent.domain.actor import Actor
from agent.domain.runs import Run
from agent.errors import OverQuota
from agent.flows import processors
from agent.flows.journal import Attempt, Unit
from agent.spi import QuotaPolicy
from agent.store import get_store

logger = logging.getLogger("agent.quota")


def is_limited() -> bool:
    return agent_settings().quota is not None


def exceeded(actor: Actor) -> OverQuota | None:
    """The limit that blocks the actor now; None where there is none, and where the policy fails to say."""
    return _blocked(actor, run_id=None) if is_limited() else None


class Limits:
    """A run's limits, asked between its steps; the verdict is part of its journal."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._over: OverQuota | None = None

    def next_call(self, unit: Unit, step: int, stages: Mapping[str, Any]) -> Attempt | None:
        """Begin the step's model call with this unit; None when a limit is reached, and `hold` raises it."""
        if stages.get("quota"):
            blocked = unit.write(f"quota:check:{step}", self._verdict)["blocked"]
            if blocked is not None:
                self._over = OverQuota(blocked["reason"], period=blocked["period"])
                return None
        return processors.mark(unit, step, stages)

    def hold(self) -> None:
        """Raises what the last verdict said."""
        if self._over is not None:
            raise self._over

    def _verdict(self) -> dict[str, Any]:
        """Whether the run may go on. What it has reserved itself, or who awaits it, does not stop it."""
        over = _blocked(self._run.actor, run_id=self._run.stream_run_id)
        return {"blocked": None if over is None else {"period": over.period, "reason": over.message}}


def _blocked(actor: Actor, *, run_id: str | None) -> OverQuota | None:
    policy = cast("QuotaPolicy", agent_settings().quota_policy)
    within = getattr(policy, "report_within", None)
    try:
        # In a block of its own: a statement of the policy that fails must not spoil the unit it is asked in.
        with get_store().atomic() if run_id is not None else nullcontext():
            report = policy.report(actor) if within is None or run_id is None else within(actor, run_id)
        blocked = cast("Mapping[str, Any] | None", report.get("blocked"))
        return OverQuota(blocked.get("reason"), period=blocked["period"]) if blocked else None
    except Exception:  # failing to ask is no verdict
        logger.exception("the quota of %s could not be read; the turn goes on", actor.ref)
        return None
