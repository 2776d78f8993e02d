"""Which history policy a run has."""

from __future__ import annotations

from typing import cast

from agent.conf import agent_settings
from agent.domain.history import HistoryPolicy
from agent.domain.windows import UNBOUNDED, History, as_policy
from agent.registry.definitions import AgentDefinition


def resolve_history(agent: AgentDefinition) -> HistoryPolicy:
    """The agent's own, else the project's policy, else the project's window, else everything; never a mixture."""
    settings = agent_settings()
    declared = (agent.history, cast("History | HistoryPolicy | None", settings.history_policy), settings.history)
    return next((as_policy(each) for each in declared if each is not None), UNBOUNDED)
