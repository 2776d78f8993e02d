"""The names that a site imports: `from agent import agent, tool, ToolContext`. Loaded at first use, models never."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.domain.actor import Actor
    from agent.domain.approvals import ApprovalThread, Requirement
    from agent.errors import AgentError, ModelError, ToolError
    from agent.history import (
        History,
        HistoryPolicy,
        HistoryPolicyContext,
        HistorySelection,
        estimate_message_tokens,
        window_history,
    )
    from agent.registry import (
        Confirm,
        Described,
        OfferContext,
        Preflight,
        Presentation,
        PromptContext,
        Tool,
        ToolContext,
        agent,
        completed,
        denied,
        persona,
        ready,
        tool,
    )

_HOME = {
    "Actor": "agent.domain.actor",
    "ApprovalThread": "agent.domain.approvals",
    "Requirement": "agent.domain.approvals",
    "AgentError": "agent.errors",
    "ModelError": "agent.errors",
    "ToolError": "agent.errors",
    "History": "agent.history",
    "HistoryPolicy": "agent.history",
    "HistoryPolicyContext": "agent.history",
    "HistorySelection": "agent.history",
    "estimate_message_tokens": "agent.history",
    "window_history": "agent.history",
    "Confirm": "agent.registry",
    "Described": "agent.registry",
    "OfferContext": "agent.registry",
    "Preflight": "agent.registry",
    "Presentation": "agent.registry",
    "PromptContext": "agent.registry",
    "Tool": "agent.registry",
    "ToolContext": "agent.registry",
    "agent": "agent.registry",
    "completed": "agent.registry",
    "denied": "agent.registry",
    "persona": "agent.registry",
    "ready": "agent.registry",
    "tool": "agent.registry",
}

__all__ = [
    "Actor",
    "AgentError",
    "ApprovalThread",
    "Confirm",
    "Described",
    "History",
    "HistoryPolicy",
    "HistoryPolicyContext",
    "HistorySelection",
    "ModelError",
    "OfferContext",
    "Preflight",
    "Presentation",
    "PromptContext",
    "Requirement",
    "Tool",
    "ToolContext",
    "ToolError",
    "agent",
    "completed",
    "denied",
    "estimate_message_tokens",
    "persona",
    "ready",
    "tool",
    "window_history",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
