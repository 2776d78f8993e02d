"""How much of a thread a turn carries: a pure choice among its messages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.domain.actor import Actor
from agent.domain.snapshots import JsonList, TurnMessage
from agent.errors import RunFailed

MESSAGE_OVERHEAD_TOKENS = 4
BYTES_A_TOKEN = 4

Estimate = Callable[[TurnMessage], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPolicyContext:
    """Whose thread it is, and who answers."""

    thread_id: str
    actor: Actor
    agent_name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySelection:
    """Both halves oldest first; what is neither kept nor dropped is forgotten."""

    keep: tuple[TurnMessage, ...]
    drop: tuple[TurnMessage, ...] = ()


class HistoryPolicy(Protocol):
    """Chooses what a turn carries; `select` is pure: no clock, flag, database, random.

    The optional attribute `max_messages` promises that only the newest so many are ever kept, so only they are read.
    """

    def select(self, messages: Sequence[TurnMessage], context: HistoryPolicyContext) -> HistorySelection: ...


def estimate_message_tokens(message: TurnMessage) -> int:
    """About four bytes a token: near the truth for Latin text, not far under it for other scripts."""
    size = _bytes(message.content) + _json_bytes(message.tool_calls) + _json_bytes(message.tool_results)
    return -(-size // BYTES_A_TOKEN) + MESSAGE_OVERHEAD_TOKENS


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _json_bytes(items: JsonList | None) -> int:
    if items is None:
        return 0
    return _bytes(json.dumps(items, ensure_ascii=False, separators=(",", ":")))


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The bounds of the built-in window; None = no bound, and the tighter of both wins."""

    max_messages: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Keeps the newest messages that fit, and always the newest one."""

    max_messages: int | None
    max_tokens: int | None
    estimate: Estimate = estimate_message_tokens

    def select(self, messages: Sequence[TurnMessage], context: HistoryPolicyContext) -> HistorySelection:
        """The same messages with or without those that a bounded read leaves out."""
        cut = max(self._count_cut(len(messages)), self._token_cut(messages))
        cut = max(0, min(cut, len(messages) - 1))
        return HistorySelection(keep=tuple(messages[cut:]), drop=tuple(messages[:cut]))

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
        """Equal for windows that choose alike."""
        estimate = f"{self.estimate.__module__}.{getattr(self.estimate, '__qualname__', type(self.estimate).__name__)}"
        return hashlib.sha256(f"window:{self.max_messages}:{self.max_tokens}:{estimate}".encode()).hexdigest()


def window_history(
    max_messages: int | None = None, max_tokens: int | None = None, *, estimate: Estimate = estimate_message_tokens
) -> Window:
    """A policy that keeps the newest messages within both bounds."""
    return Window(max_messages=max_messages, max_tokens=max_tokens, estimate=estimate)


UNBOUNDED = window_history()


def as_policy(history: History | HistoryPolicy) -> HistoryPolicy:
    """What a host declares, as a policy."""
    if isinstance(history, History):
        return window_history(history.max_messages, history.max_tokens)
    return history


def bound_problems(history: object) -> list[str]:
    """What is wrong with the declared bounds; a custom policy without bounds has none."""
    names = ("max_messages", "max_tokens")
    bounds = {name: getattr(history, name, None) for name in names}
    return [
        f"{name} is {bound!r}: a whole number from 1 up, or None for no bound"
        for name, bound in bounds.items()
        if bound is not None and (type(bound) is not int or bound < 1)
    ]


def read_limit(policy: HistoryPolicy) -> int | None:
    """How many of the newest messages the policy can see at all; None = the whole thread."""
    limit: int | None = getattr(policy, "max_messages", None)
    return None if limit is None else max(1, limit)


def select_history(
    policy: HistoryPolicy, messages: Sequence[TurnMessage], context: HistoryPolicyContext
) -> HistorySelection:
    """The policy's choice, refused with `run_failed` when it invents, changes or repeats a message."""
    selection = policy.select(messages, context)
    given = {message.id: message for message in messages}
    seen: set[str] = set()
    for message in (*selection.keep, *selection.drop):
        if message.id in seen or given.get(message.id) != message:
            raise RunFailed(f"The history policy {type(policy).__name__} returned a message that it was not given.")
        seen.add(message.id)
    return selection
