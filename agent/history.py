"""What a host builds its history policies from."""

from agent.domain.history import (
    HistoryPolicy,
    HistoryPolicyContext,
    HistorySelection,
    estimate_message_tokens,
)
from agent.domain.snapshots import TurnMessage
from agent.domain.summaries import (
    DEFAULT_HISTORY_SUMMARY_INSTRUCTION,
    HistorySummary,
    Summarizer,
    SummaryContext,
    summarize_with_model,
)
from agent.domain.windows import History, window_history

__all__ = [
    "DEFAULT_HISTORY_SUMMARY_INSTRUCTION",
    "History",
    "HistoryPolicy",
    "HistoryPolicyContext",
    "HistorySelection",
    "HistorySummary",
    "Summarizer",
    "SummaryContext",
    "TurnMessage",
    "estimate_message_tokens",
    "summarize_with_model",
    "window_history",
]
