"""The built-in history policy: the newest messages that fit, and what may stand for the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.domain.history import (
    Estimate,
    HistoryPolicy,
    HistoryPolicyContext,
    HistorySelection,
    estimate_message_tokens,
    fingerprint_of_parts,
)
from agent.domain.snapshots import TurnMessage
from agent.domain.summaries import Summarizer, summarize_with_model


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The bounds of the built-in window; None = no bound, and the tighter of both wins.

    `summarize`: True asks the run's model, a `Summarizer` whatever it likes, what stands for the dropped messages.
    """

    max_messages: int | None = None
    max_tokens: int | None = None
    summarize: bool | Summarizer = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Keeps the newest messages that fit, and always the newest one."""

    max_messages: int | None
    max_tokens: int | None
    estimate: Estimate = estimate_message_tokens
    summarize: Summarizer | None = None

    def select(self, messages: Sequence[TurnMessage], context: HistoryPolicyContext) -> HistorySelection:
        """The same messages with or without those that a bounded read leaves out."""
        cut = max(self._count_cut(len(messages)), self._token_cut(messages))
        cut = max(0, min(cut, len(messages) - 1))
        return HistorySelection(keep=tuple(messages[cut:]), drop=tuple(messages[:cut]))

    def is_met(self, count: int, tokens: int) -> bool:
        """Whether so many of the newest messages, so long together, are all that it can keep."""
        by_count = self.max_messages is not None and count >= max(1, self.max_messages)
        return by_count or (self.max_tokens is not None and count > 0 and tokens > self.max_tokens)

    def _count_cut(self, count: int) -> int:
        return 0 if self.max_messages is None else max(0, count - self.max_messages)

    def _token_cut(self, messages: Sequence[TurnMessage]) -> int:
        if self.max_tokens is None:
            return 0
        total = 0
        for index in range(len(messages) - 1, -1, -1):
            total += self.estimate(messages[index])
            if total > self.max_tokens and index < len(messages) - 1:
                return index + 1
        return 0

    @property
    def fingerprint(self) -> str:
        """Equal for windows that choose alike and summarize alike."""
        return fingerprint_of_parts("window", self.max_messages, self.max_tokens, self.estimate, self.summarize)


def window_history(
    max_messages: int | None = None,
    max_tokens: int | None = None,
    *,
    estimate: Estimate = estimate_message_tokens,
    summarize: Summarizer | None = None,
) -> Window:
    """A policy that keeps the newest messages within both bounds; with `summarize` a summary stands for the others."""
    return Window(max_messages=max_messages, max_tokens=max_tokens, estimate=estimate, summarize=summarize)


UNBOUNDED = window_history()


def as_policy(history: History | HistoryPolicy) -> HistoryPolicy:
    """What a host declares, as a policy."""
    if not isinstance(history, History):
        return history
    asked = history.summarize
    summarize = (summarize_with_model() if asked is True else asked) or None
    return window_history(history.max_messages, history.max_tokens, summarize=summarize)
