"""The quota that the ledger keeps by itself (spec 08 §4): nothing is counted twice, nothing has to be released."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, tzinfo
from typing import Any

from django.db.models import Count, F, Q, Sum
from django.utils import timezone

from agent.conf import agent_settings
from agent.domain import quota
from agent.domain.actor import Actor
from agent.domain.ledger import UsageTotals
from agent.domain.quota import Filled, Window
from agent.domain.states import RunTrigger
from agent.models import Run, UsageEntry
from governance.base import created_in
from governance.days import ONE_DAY, DayRange, Span, span_of, today
from governance.models import UsageRollup
from governance.queries.parts import parts
from governance.reading import one_view
from governance.rollups.marks import USAGE, database

_TOKENS = F("input_tokens") + F("output_tokens")


class LedgerQuota:
    """What a person or a tenant used in the day and the month: closed days from rollups, the rest from the ledger."""

    def report(self, actor: Actor) -> Mapping[str, Any]:
        return self._report(actor, None)

    def report_within(self, actor: Actor, run_id: str) -> Mapping[str, Any]:
        """The same as this run sees it: its own reserve is what it is using up."""
        return self._report(actor, run_id)

    def _report(self, actor: Actor, run_id: str | None) -> Mapping[str, Any]:
        windows = quota.windows_for(agent_settings().quota or {}, actor)
        now = timezone.now()
        today_of: dict[bool, UsageTotals] = {}  # a day is part of its month: its rows are read once
        with one_view():
            return quota.report([_filled(window, actor, run_id, now, today_of) for window in windows])


def _filled(
    window: Window, actor: Actor, run_id: str | None, now: datetime, today_of: dict[bool, UsageTotals]
) -> Filled:
    zone = agent_settings().report_time_zone
    start, end = quota.starts(window.period, today(zone, now), zone)
    whose = Q(tenant_ref=actor.tenant_ref) if window.tenant else Q(actor_ref=actor.ref)
    reserves = window.reserve_tokens or window.reserve_nanos
    day = today(zone, now)
    if window.tenant not in today_of:
        today_of[window.tenant] = _of_ledger(whose, [span_of(day, zone)])
    return Filled(
        window=window,
        used=_added(today_of[window.tenant], _before(whose, start.date(), day, zone)),
        open_runs=_open_runs(whose, run_id) if reserves else 0,
        resets_at=end,
    )


def _before(whose: Q, first: date, day: date, zone: tzinfo) -> UsageTotals:
    """What was used from a day on until today began: of closed days from rollups."""
    if first == day:
        return UsageTotals()
    some = parts(USAGE, DayRange(first=first, last=day - ONE_DAY, zone=zone))
    used = _of_ledger(whose, list(some.live)) if some.live else UsageTotals()
    return _added(used, _of_rollups(whose & some.rolled_q())) if some.rolled else used


def _of_ledger(whose: Q, spans: list[Span]) -> UsageTotals:
    """What limits are told of, and nothing that is not in the index of an actor's rows."""
    rows = created_in(UsageEntry.objects.using(database()), spans).filter(whose)
    return _totals(
        rows.aggregate(
            sum_used_tokens=Sum(_TOKENS),
            sum_cost_nanos=Sum("cost_nanos"),
            sum_unpriced_requests=Count("*") - Count("cost_nanos"),
        )
    )


def _of_rollups(asked: Q) -> UsageTotals:
    rows = UsageRollup.objects.using(database()).filter(asked)
    plain = ("cost_nanos", "unpriced_requests")
    return _totals(rows.aggregate(sum_used_tokens=Sum(_TOKENS), **{f"sum_{name}": Sum(name) for name in plain}))


def _totals(sums: Mapping[str, Any]) -> UsageTotals:
    return UsageTotals(**{name.removeprefix("sum_"): int(value or 0) for name, value in sums.items()})


def _added(one: UsageTotals, other: UsageTotals) -> UsageTotals:
    names = UsageTotals.__slots__
    return UsageTotals(**{name: getattr(one, name) + getattr(other, name) for name in names})


def _open_runs(whose: Q, run_id: str | None) -> int:
    """Turns that are not over; a delegate that its parent waits for is part of the parent's."""
    runs = Run.objects.using(database()).open().filter(whose).exclude(trigger=RunTrigger.DELEGATE)
    return runs.exclude(pk=run_id).count() if run_id else runs.count()
