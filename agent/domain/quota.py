"""Limits of what people and tenants spend, and how far they are reached (spec 08 §4): pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from agent.domain.actor import Actor
from agent.domain.clock import wire_time
from agent.domain.ledger import UsageTotals
from agent.domain.pricing import reported_nanos, usd

PERIODS = ("day", "month")
OPTIONS = ("tokens", "usd", "warn_at", "reserve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One limit: of a day or a month, of a person or of their whole tenant."""

    period: str
    tokens: int | None = None
    nanos: int | None = None
    warn_at: float | None = None
    reserve_tokens: int = 0
    reserve_nanos: int = 0
    tenant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A window with what was used in it, and how many turns that still run have a part reserved."""

    window: Window
    used: UsageTotals
    open_runs: int
    resets_at: datetime

    @property
    def reserved_tokens(self) -> int:
        return self.window.reserve_tokens * self.open_runs

    @property
    def reserved_nanos(self) -> int:
        return self.window.reserve_nanos * self.open_runs

    @property
    def ratio(self) -> float:
        """How full it is, by tokens or by money, whichever is more; 1 is exhausted."""
        shares = [
            _share(self.used.used_tokens + self.reserved_tokens, self.window.tokens),
            _share(self.used.cost_nanos + self.reserved_nanos, self.window.nanos),
        ]
        return max(shares)


def windows_for(quota: Mapping[str, Any], actor: Actor) -> list[Window]:
    """The windows that an actor is held to: of their most generous role, and of their tenant."""
    roles = [limits for role, limits in (quota.get("by_role") or {}).items() if role in actor.roles]
    found = [_most_generous(period, roles or [quota]) for period in PERIODS]
    if actor.tenant_ref is not None and quota.get("tenant"):
        found += [_window(period, quota["tenant"].get(period), tenant=True) for period in PERIODS]
    return [window for window in found if window is not None]


def starts(period: str, day: date, zone: tzinfo) -> tuple[datetime, datetime]:
    """When the window that holds this day begins, and when the next one does."""
    if period == "day":
        first, following = day, day + timedelta(days=1)
    else:
        first = day.replace(day=1)
        following = (first + timedelta(days=31)).replace(day=1)
    return datetime.combine(first, time.min, zone), datetime.combine(following, time.min, zone)


def report(filled: Sequence[Filled]) -> dict[str, Any]:
    """The report on the wire: windows, which of them blocks, or of which is warned."""
    told: dict[str, Any] = {"windows": [dict(_told(each)) for each in filled]}
    exhausted = [each for each in filled if each.ratio >= 1]
    if exhausted:
        first = min(exhausted, key=lambda each: PERIODS.index(each.window.period))
        told["blocked"] = {"period": first.window.period, "reason": _reason(first)}
        return told
    warned = [each for each in filled if each.window.warn_at is not None and each.ratio >= each.window.warn_at]
    if warned:
        fullest = max(warned, key=lambda each: each.ratio)
        told["warning"] = {
            "period": fullest.window.period,
            "ratio": round(fullest.ratio, 4),
            "reason": f"{fullest.ratio:.0%} of the {_limit_of(fullest)} is used.",
        }
    return told


def problems(quota: object) -> Iterator[str]:
    """What is wrong with the setting, one sentence each."""
    if not isinstance(quota, Mapping):
        yield "a dict of day, month, by_role, tenant"
        return
    for key, value in quota.items():
        if key in PERIODS:
            yield from _window_problems(key, value)
        elif key == "tenant":
            yield from _limits_problems("tenant", value)
        elif key == "by_role" and isinstance(value, Mapping):
            for role, limits in value.items():
                yield from _limits_problems(f"by_role {role!r}", limits)
        else:
            yield f"{key!r}: there are day, month, by_role (a dict of role to limits), tenant"


def _limits_problems(where: str, limits: object) -> Iterator[str]:
    if not isinstance(limits, Mapping) or not set(limits) <= {*PERIODS}:
        yield f"{where}: a dict of day, month"
        return
    for period, value in limits.items():
        yield from _window_problems(f"{where} {period}", value)


def _window_problems(where: str, value: object) -> Iterator[str]:
    if not isinstance(value, Mapping) or not set(value) <= {*OPTIONS}:
        yield f"{where}: a dict of {', '.join(OPTIONS)}"
        return
    tokens, usd_limit, warn_at, reserve = (value.get(name) for name in OPTIONS)
    if tokens is None and usd_limit is None:
        yield f"{where}: a limit of tokens or of usd"
    if tokens is not None and (type(tokens) is not int or tokens < 0):
        yield f"{where} tokens: a whole number from 0 up"
    if usd_limit is not None and not _is_amount(usd_limit):
        yield f"{where} usd: a number from 0 up"
    if warn_at is not None and not (_is_amount(warn_at) and 0 < warn_at <= 1):
        yield f"{where} warn_at: a share above 0 and up to 1"
    parts = reserve if isinstance(reserve, Mapping) else {"tokens": 0 if reserve is None else reserve}
    both = tokens is not None and usd_limit is not None
    if not set(parts) <= {"tokens", "usd"} or not all(_is_amount(part) for part in parts.values()):
        yield f"{where} reserve: a number from 0 up, or a dict of tokens, usd"
    elif both and reserve and not isinstance(reserve, Mapping):
        yield f"{where} reserve: a dict of tokens, usd, where both are limited"


def _is_amount(value: object) -> bool:
    """A number from 0 up that is one; neither True nor endless."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and 0 <= value < 10**9


def _most_generous(period: str, several: Sequence[Mapping[str, Any]]) -> Window | None:
    """Of several sets of limits the widest, by tokens and by money; one of them without this window has no limit."""
    found = [_window(period, limits.get(period)) for limits in several]
    windows = [window for window in found if window is not None]
    if len(windows) < len(found):
        return None
    tokens = [window.tokens for window in windows]
    nanos = [window.nanos for window in windows]
    widest = max(windows, key=lambda one: (_or_endless(one.nanos), _or_endless(one.tokens)))
    return Window(
        period=period,
        tokens=None if None in tokens else max(each for each in tokens if each is not None),
        nanos=None if None in nanos else max(each for each in nanos if each is not None),
        warn_at=widest.warn_at,
        reserve_tokens=widest.reserve_tokens,
        reserve_nanos=widest.reserve_nanos,
    )


def _window(period: str, options: Mapping[str, Any] | None, *, tenant: bool = False) -> Window | None:
    if options is None:
        return None
    tokens, limit = options.get("tokens"), options.get("usd")
    reserve = options.get("reserve") or 0
    parts = reserve if isinstance(reserve, Mapping) else {"usd" if tokens is None else "tokens": reserve}
    return Window(
        period=period,
        tokens=tokens,
        nanos=None if limit is None else _nanos(limit),
        warn_at=options.get("warn_at"),
        reserve_tokens=int(parts.get("tokens", 0)),
        reserve_nanos=_nanos(parts.get("usd", 0)),
        tenant=tenant,
    )


def _nanos(amount: float | Decimal) -> int:
    return reported_nanos(Decimal(str(amount)))


def _or_endless(limit: int | None) -> float:
    return float("inf") if limit is None else limit


def _share(used: int, limit: int | None) -> float:
    if limit is None:
        return 0.0
    # Compared as whole numbers: a share of a huge limit would round to 1 before it is reached.
    return 1.0 + (used - limit) / max(limit, 1) if used >= limit else min(used / limit, 0.9999999999)


def _told(filled: Filled) -> Iterator[tuple[str, Any]]:
    window, used = filled.window, filled.used
    yield "period", window.period
    if window.tenant:
        yield "whose", "tenant"
    if window.tokens is not None:
        yield "usedTokens", used.used_tokens
        yield "limitTokens", window.tokens
    yield "usedUsd", usd(used.cost_nanos)
    if window.nanos is not None:
        yield "limitUsd", usd(window.nanos)
    if filled.reserved_tokens:
        yield "reservedTokens", filled.reserved_tokens
    if filled.reserved_nanos:
        yield "reservedUsd", usd(filled.reserved_nanos)
    yield "unpricedRequests", used.unpriced_requests
    yield "resetsAt", wire_time(filled.resets_at)
    if window.warn_at is not None:
        yield "warnAt", window.warn_at


def _reason(filled: Filled) -> str:
    """Why it blocks, in words; what turns that still run have reserved is told apart from what was spent."""
    spent = _share(filled.used.used_tokens, filled.window.tokens), _share(filled.used.cost_nanos, filled.window.nanos)
    if max(spent) >= 1:
        return f"The {_limit_of(filled)} is used up."
    return f"The {_limit_of(filled)} is taken: what is left is reserved for answers that are being written."


def _limit_of(filled: Filled) -> str:
    whose = "limit of your organisation for this" if filled.window.tenant else "limit of this"
    return f"{whose} {filled.window.period}"
