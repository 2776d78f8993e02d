"""Ledger rows of a turn: one a model call, and one for every attempt that may have cost money (spec 03 §4)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from agent.domain.commands import RecordUsage
from agent.domain.ledger import UsageEntry
from agent.domain.model_calls import ModelRequest, Reply, Usage
from agent.domain.pricing import usd
from agent.domain.runs import Run
from agent.domain.states import TokensSource, UsagePurpose

logger = logging.getLogger("agent.ledger")

COUNTS = ("input_tokens", "output_tokens", "cache_write_tokens", "cache_write_1h_tokens", "cache_read_tokens")
ALWAYS_SAID = ("input_tokens", "output_tokens")
MOST_TOKENS = 10**12
MOST_USD = 10**6  # of one call; nine places of it fit into the column
BYTES_A_TOKEN = 4  # the same rough estimate as for history windows (spec 04 §2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Token counts and where they come from."""

    usage: Usage
    source: TokensSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An attempt of a model call that broke off; `number` counts them within a run attempt, from 1."""

    step: str
    number: int
    model_id: str
    counted: Counted


def count_reply(request: ModelRequest, reply: Reply) -> Counted:
    """What a finished call used. What a vendor does not say, or says is 0 beside an answer, is estimated, not free.

    Free is what says that it cost 0 and used nothing.
    """
    usage = None if reply.usage is None else lawful(reply.usage)
    if not (reply.text or reply.tool_calls or reply.reasoning):
        return Counted(usage=usage or Usage(), source=TokensSource.MISSING if usage is None else TokensSource.REPORTED)
    shown = reply.text + (reply.reasoning or "") + "".join(_text(call.input) for call in reply.tool_calls)
    ours = _estimated(request, shown)
    if usage is None:
        return ours
    if usage.is_nothing:  # an answer that somebody had kept: at its word, for it cost nothing
        return Counted(usage=usage, source=TokensSource.REPORTED)
    known = replace(
        usage,
        input_tokens=usage.input_tokens or ours.usage.input_tokens,
        output_tokens=usage.output_tokens or ours.usage.output_tokens,
    )
    return Counted(usage=known, source=TokensSource.REPORTED if known == usage else TokensSource.ESTIMATED)


def count_broken(request: ModelRequest, usage: Usage | None, streamed: str) -> Counted:
    """What a call used that broke off: vendors report its output late, so never less than was streamed."""
    if usage is None and not streamed:
        return Counted(usage=Usage(), source=TokensSource.MISSING)
    ours = _estimated(request, streamed)
    if usage is None:
        return ours
    usage = lawful(usage)
    if usage.is_nothing:
        return Counted(usage=usage, source=TokensSource.REPORTED)
    known = replace(
        usage,
        input_tokens=usage.input_tokens or ours.usage.input_tokens,
        output_tokens=max(usage.output_tokens, ours.usage.output_tokens),
    )
    return Counted(usage=known, source=TokensSource.REPORTED if known == usage else TokensSource.ESTIMATED)


def lawful(usage: Usage) -> Usage:
    """The counts as a ledger can hold them: whole, not negative, not endless; a cost that is no amount is unknown."""
    cost = usage.reported_cost_usd
    if cost is not None and not (cost.is_finite() and 0 <= cost <= MOST_USD):
        cost = None
    counts = {name: _count(getattr(usage, name)) for name in COUNTS}
    more_cached = (counts["cache_write_tokens"] or 0) + (counts["cache_read_tokens"] or 0) > (
        counts["input_tokens"] or 0
    )
    changed = cost != usage.reported_cost_usd or any(counts[name] != getattr(usage, name) for name in COUNTS)
    if changed or more_cached:  # the latter are charged as cached, and nothing is given back for them
        logger.warning("a model provider reported impossible usage: %s", usage)
    return Usage(
        **{name: count or 0 if name in ALWAYS_SAID else count for name, count in counts.items()},  # type: ignore[arg-type]
        reported_cost_usd=cost,
    )


def _count(value: object) -> int | None:
    if not isinstance(value, int | float) or value != value:
        return None
    return int(min(max(value, 0), MOST_TOKENS))


def count_crashed(sent: Iterable[str], streamed: str) -> Counted:
    """What a call used whose worker is gone: what was sent and streamed; nobody knows when nothing was streamed."""
    if not streamed:
        return Counted(usage=Usage(), source=TokensSource.MISSING)
    usage = Usage(input_tokens=_tokens("".join(sent)), output_tokens=_tokens(streamed))
    return Counted(usage=usage, source=TokensSource.ESTIMATED)


def row(
    run: Run,
    counted: Counted,
    *,
    model_id: str,
    step_key: str,
    message_id: str | None = None,
    purpose: str = UsagePurpose.CHAT,
) -> RecordUsage:
    """The ledger row of a model call of this run."""
    usage = counted.usage
    return RecordUsage(
        thread_id=run.thread_id,
        run_id=run.id,
        message_id=message_id,
        actor_ref=run.actor.ref,
        tenant_ref=run.actor.tenant_ref,
        agent_name=run.agent_name,
        model_id=model_id,
        purpose=purpose,
        step_key=step_key,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
        tokens_source=counted.source,
        reported_cost_usd=usage.reported_cost_usd,
    )


def broken_row(run: Run, broken: Broken, *, run_attempt: int, purpose: str = UsagePurpose.CHAT) -> RecordUsage:
    key = f"{broken.step}#{run_attempt}.{broken.number}"
    return row(run, broken.counted, model_id=broken.model_id, step_key=key, purpose=purpose)


def message_usage(entry: UsageEntry) -> dict[str, Any]:
    """The usage of a step as its message and its `step-finish` frame carry it; `costUsd` null means unpriced."""
    counts = {
        "inputTokens": entry.input_tokens,
        "outputTokens": entry.output_tokens,
        "cacheWriteTokens": entry.cache_write_tokens,
        "cacheReadTokens": entry.cache_read_tokens,
    }
    usage: dict[str, Any] = {name: count for name, count in counts.items() if count is not None}
    usage["costUsd"] = None if entry.cost_nanos is None else usd(entry.cost_nanos)
    return usage


def _estimated(request: ModelRequest, streamed: str) -> Counted:
    sent = request.system + "".join(
        message.content
        + _text([call.input for call in message.tool_calls])
        + _text([result.output for result in message.tool_results])
        for message in request.messages
    )
    usage = Usage(input_tokens=_tokens(sent), output_tokens=_tokens(streamed))
    return Counted(usage=usage, source=TokensSource.ESTIMATED)


def _tokens(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // BYTES_A_TOKEN)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
