"""How much of a thread a turn carries: a pure choice among its messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Protocol

from agent.domain.actor import Actor
from agent.domain.canonical import sha256_hex
from agent.domain.snapshots import Json, JsonList, TurnMessage
from agent.domain.text import is_exact
from agent.errors import RunFailed

MESSAGE_OVERHEAD_TOKENS = 4
BYTES_A_TOKEN = 4
FINGERPRINT_LENGTH = 64
DEEPEST = 6  # how far options within options count

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

    Optional attributes: `max_messages` promises that only the newest so many are ever kept, so only they are read;
    `summarize` (a `Summarizer`) writes what stands for the dropped messages, and may do what `select` may not;
    `fingerprint` tells its summaries from those of other policies (default: made of its class and its options).
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


def bound_problems(history: object) -> list[str]:
    """What is wrong with the declared bounds; a custom policy without bounds has none."""
    names = ("max_messages", "max_tokens")
    bounds = {name: getattr(history, name, None) for name in names}
    problems = [
        f"{name} is {bound!r}: a whole number from 1 up, or None for no bound"
        for name, bound in bounds.items()
        if bound is not None and (type(bound) is not int or bound < 1)
    ]
    summarize = getattr(history, "summarize", None)
    if not (summarize is None or isinstance(summarize, bool) or callable(summarize)):
        problems.append(f"summarize is {summarize!r:.40}: True, False or a summarizer")
    return problems


def summarizes(policy: HistoryPolicy) -> bool:
    """Whether something stands for what the policy drops."""
    return getattr(policy, "summarize", None) is not None


def read_limit(policy: HistoryPolicy) -> int | None:
    """How many of the newest messages the policy can see at all; None = the whole thread."""
    limit: int | None = getattr(policy, "max_messages", None)
    return None if limit is None or summarizes(policy) else max(1, limit)


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


def folds_up_to(messages: Sequence[TurnMessage], selection: HistorySelection, floor: int) -> int:
    """The highest number below which no message is lost once the dropped ones are folded.

    What is neither kept nor dropped is not told anywhere, so the cover ends below the first such message above `floor`.
    """
    kept, dropped = ({message.id for message in half} for half in (selection.keep, selection.drop))
    reached = floor
    for message in messages:
        if message.seq <= floor:
            continue
        if message.id in dropped:
            reached = message.seq
        elif message.id not in kept:
            break
    return reached


def fingerprint_of(policy: HistoryPolicy) -> str:
    """Which policy a summary was made under: its own name of itself, else what its class and options say."""
    own = getattr(policy, "fingerprint", None)
    if isinstance(own, str) and 0 < len(own) <= FINGERPRINT_LENGTH and is_exact(own):
        return own
    return fingerprint_of_parts(policy if own is None else str(own))


def fingerprint_of_parts(*parts: object) -> str:
    """The same text for equal parts in every process: functions and classes count by their names."""
    return sha256_hex([_named(part, 0) for part in parts])


def _named(value: object, depth: int) -> Json:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return repr(value)
    if depth > DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): _named(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_named(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_named(item, depth + 1) for item in value), key=repr)
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    kind = type(value)
    return [f"{kind.__module__}.{kind.__qualname__}", {name: _named(each, depth + 1) for name, each in _options(value)}]


def _options(value: object) -> Iterable[tuple[str, object]]:
    """What an object was made with; what can change in place is what it gathered, and would never be met again."""
    if is_dataclass(value):
        return [(field.name, getattr(value, field.name)) for field in fields(value) if field.compare]
    kept = getattr(value, "__dict__", {}).items()
    return [(name, each) for name, each in kept if not isinstance(each, list | set | dict | bytearray)]
