"""What a host builds its history policies from."""

from agent.domain.history import (
    History,
    HistoryPolicy,
    HistoryPolicyContext,
    HistorySelection,
    estimate_message_tokens,
    window_history,
)

__all__ = [
    "History",
    "HistoryPolicy",
    "HistoryPolicyContext",
    "HistorySelection",
    "estimate_message_tokens",
    "window_history",
]
