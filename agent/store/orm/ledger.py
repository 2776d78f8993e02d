"""Capability `ledger`: what model calls cost. Its prices are in `prices`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, datetime, time, timedelta, tzinfo

from django.db.models import Count, F, Q, Sum

from agent.domain.commands import RecordUsage
from agent.domain.ledger import UsageEntry as UsageValue
from agent.domain.ledger import UsageTotals
from agent.domain.pricing import reported_nanos, row_cost
from agent.domain.text import clean_cut
from agent.models import UsageEntry
from agent.models.fields import NAME
from agent.models.inserts import Insert
from agent.models.ledger import UsageEntryQuerySet
from agent.models.prepared import Slot, Update
from agent.store.orm import rows
from agent.store.orm.prices import OrmPrices

_insert = Insert(UsageEntry)
_TOKENS = F("input_tokens") + F("output_tokens")
# Guarded once more: what a provider reported, or what was priced meanwhile, stays.
_FIGURES = ("estimated_cost_nanos", "cost_nanos")
_reprice = Update(
    lambda: UsageEntry.objects.filter(pk=Slot("entry"), reported_cost_nanos=None),
    {**{name: Slot(name) for name in _FIGURES}, "price": Slot("price_id")},
)


class OrmLedger(OrmPrices):
    def record_usage(self, usage: RecordUsage) -> UsageValue:
        now = self.clock()
        model_id = clean_cut(usage.model_id, NAME)
        reported = None if usage.reported_cost_usd is None else reported_nanos(usage.reported_cost_usd)
        cost = row_cost(self.price_in_force(model_id, now), usage, reported=reported)
        values = {name: getattr(usage, name, None) for name in rows.USAGE}
        values |= {**asdict(cost), "model_id": model_id, "created_at": now}
        stored = _insert.new(self.db, _insert.draft(self.db, values))
        if stored is None:
            first = UsageEntry.objects.using(self.db).filter(run_id=usage.run_id, step_key=usage.step_key)
            stored = first.values(*rows.USAGE).get()
        return rows.usage(stored)

    def usage_between(self, actor_ref: str, start: datetime, end: datetime) -> UsageTotals:
        entries = UsageEntry.objects.using(self.db).filter(actor_ref=actor_ref).between(start, end)
        unpriced = Q(cost_nanos=None)
        sums = entries.aggregate(
            sum_requests=Count("id"),
            sum_used_tokens=Sum(_TOKENS),
            sum_cost_nanos=Sum("cost_nanos"),
            sum_reported_cost_nanos=Sum("reported_cost_nanos"),
            sum_unpriced_requests=Count("id", filter=unpriced),
            sum_unpriced_tokens=Sum(_TOKENS, filter=unpriced),
        )
        # Sums of big integers come as decimals from some databases, and as nothing where there are no rows.
        return UsageTotals(**{name.removeprefix("sum_"): int(value or 0) for name, value in sums.items()})

    def quota_today(self, actor_ref: str, day: date, tz: tzinfo) -> UsageTotals:
        start = datetime.combine(day, time.min, tz)
        return self.usage_between(actor_ref, start, datetime.combine(day + timedelta(days=1), time.min, tz))

    def usage_of_run(self, run_id: str) -> list[UsageValue]:
        entries = UsageEntry.objects.using(self.db).filter(run_id=run_id).order_by("id")
        return [rows.usage(row) for row in entries.values(*rows.USAGE)]

    def unpriced_usage(self, start: datetime, end: datetime, limit: int) -> list[UsageValue]:
        if limit <= 0:
            return []
        unpriced = UsageEntry.objects.using(self.db).unpriced().between(start, end).order_by("id")
        return [rows.usage(row) for row in unpriced.values(*rows.USAGE)[:limit]]

    def reprice_usage(self, ids: Sequence[int], include_estimated: bool = False) -> int:
        with self.joined():
            entries = self._repriceable(ids, include_estimated=include_estimated)
            return sum(self._repriced(rows.usage(row)) for row in entries.order_by("id").values(*rows.USAGE))

    def _repriceable(self, ids: Sequence[int], *, include_estimated: bool) -> UsageEntryQuerySet:
        named = UsageEntry.objects.using(self.db).select_for_update().filter(pk__in=ids, reported_cost_nanos=None)
        return named if include_estimated else named.unpriced()

    def _repriced(self, entry: UsageValue) -> bool:
        price = self.price_in_force(entry.model_id, entry.created_at)
        if price is None:
            return False
        cost = row_cost(price, entry, reported=None)
        figures = {"estimated_cost_nanos": cost.estimated_cost_nanos, "cost_nanos": cost.cost_nanos}
        return _reprice(self.db, entry=entry.id, price_id=cost.price_id, **figures) == 1
