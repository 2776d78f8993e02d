"""The names that a site imports: `from agent import agent, tool, ToolContext`.

Loaded at first use, and models by `send` and `chat` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.domain.actor import Actor
    from agent.domain.approvals import ApprovalThread, Requirement
    from agent.domain.vocabulary import DecisionVocabulary
    from agent.errors import AgentError, ConfirmTokenError, ModelError, RunActive, ToolError
    from agent.flows.admission import Admitted, Queued, chat
    from agent.flows.admission import submit as send
    from agent.flows.confirmed_calls import call_confirmed
    from agent.flows.starts import Send
    from agent.flows.text_decisions import Decided
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
        FollowUps,
        Handoff,
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
    "Admitted": "agent.flows.admission",
    "Decided": "agent.flows.text_decisions",
    "DecisionVocabulary": "agent.domain.vocabulary",
    "Queued": "agent.flows.admission",
    "RunActive": "agent.errors",
    "Send": "agent.flows.starts",
    "chat": "agent.flows.admission",
    "send": "agent.flows.admission:submit",
    "ApprovalThread": "agent.domain.approvals",
    "Requirement": "agent.domain.approvals",
    "AgentError": "agent.errors",
    "ConfirmTokenError": "agent.errors",
    "call_confirmed": "agent.flows.confirmed_calls",
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
    "FollowUps": "agent.registry",
    "Handoff": "agent.registry",
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
    "Admitted",
    "AgentError",
    "ApprovalThread",
    "Confirm",
    "ConfirmTokenError",
    "Decided",
    "DecisionVocabulary",
    "Described",
    "FollowUps",
    "Handoff",
    "History",
    "HistoryPolicy",
    "HistoryPolicyContext",
    "HistorySelection",
    "ModelError",
    "OfferContext",
    "Preflight",
    "Presentation",
    "PromptContext",
    "Queued",
    "Requirement",
    "RunActive",
    "Send",
    "Tool",
    "ToolContext",
    "ToolError",
    "agent",
    "call_confirmed",
    "chat",
    "completed",
    "denied",
    "estimate_message_tokens",
    "persona",
    "ready",
    "send",
    "tool",
    "window_history",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOME[name].partition(":")
    value: object = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
