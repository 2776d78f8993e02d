"""Re-pricing (spec 08 §3): the only change of ledger rows, in batches, each with its audit and its days' marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from agent.conf import agent_settings
from agent.db import one_writer
from agent.domain.pricing import row_cost
from agent.errors import Invalid
from agent.models import UsageEntry
from agent.models.tenants import Tenants, within
from agent.store import get_store
from governance.days import today
from governance.models import RepriceAudit
from governance.rollups.marks import USAGE, database, mark_dirty

BATCH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Repricing:
    """What to price again, why, and for whom. Without a range: every unpriced row."""

    by: str
    reason: str
    start: datetime | None = None
    end: datetime | None = None
    model_id: str | None = None
    include_estimated: bool = False
    tenants: Tenants = None  # whose rows; None: everybody's


@dataclass(frozen=True, slots=True, kw_only=True)
class Repriced:
    """What was changed, or would be: rows, and their cost before and after (an unpriced row counts as 0 before)."""

    rows: int = 0
    nanos_before: int = 0
    nanos_after: int = 0
    unpriced: int = 0  # rows that have no price still

    def __add__(self, other: Repriced) -> Repriced:
        return Repriced(
            rows=self.rows + other.rows,
            nanos_before=self.nanos_before + other.nanos_before,
            nanos_after=self.nanos_after + other.nanos_after,
            unpriced=self.unpriced + other.unpriced,
        )


def reprice(order: Repricing, *, dry_run: bool = False) -> Repriced:
    """Price rows with the price in force at each one's time; reported costs are never touched."""
    if not order.reason.strip():
        raise Invalid.field("reason", "why the past is changed")
    if order.include_estimated and (order.start is None or order.end is None):
        raise Invalid.field("includeEstimated", "only with both ends of a range")
    if order.start is not None and order.end is not None and order.start >= order.end:
        raise Invalid.field("from", "before to")
    done = Repriced()
    for ids in _batches(order):
        done += _foreseen(ids) if dry_run else _batch(order, ids)
    return done


def _batches(order: Repricing) -> Iterator[list[int]]:
    last = 0
    while ids := list(_candidates(order).filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:BATCH]):
        yield ids
        last = ids[-1]


def _candidates(order: Repricing) -> QuerySet[UsageEntry]:
    rows = UsageEntry.objects.using(database()).filter(within(order.tenants), reported_cost_nanos=None)
    if not order.include_estimated:
        rows = rows.unpriced()
    if order.start is not None:
        rows = rows.filter(created_at__gte=order.start)
    if order.end is not None:
        rows = rows.filter(created_at__lt=order.end)
    return rows if order.model_id is None else rows.filter(model_id=order.model_id)


def _batch(order: Repricing, ids: Sequence[int]) -> Repriced:
    """One transaction: the rows, the audit of it, and the marks that have their days read from the ledger."""
    store = get_store()
    with one_writer(database()), store.atomic():
        rows = UsageEntry.objects.using(database()).filter(pk__in=ids)
        before = {row.pk: row for row in rows.select_for_update().order_by("pk")}
        store.reprice_usage(ids, include_estimated=order.include_estimated)
        after = {row.pk: row for row in rows}
        changed = [pk for pk, row in before.items() if _figures(row) != _figures(after[pk])]
        done = Repriced(
            rows=len(changed),
            nanos_before=sum(before[pk].cost_nanos or 0 for pk in changed),
            nanos_after=sum(after[pk].cost_nanos or 0 for pk in changed),
            unpriced=sum(row.cost_nanos is None for row in after.values()),
        )
        if changed:
            _audit(order, done)
            zone = agent_settings().report_time_zone
            mark_dirty(USAGE, {today(zone, before[pk].created_at) for pk in changed})
    return done


def _figures(row: UsageEntry) -> tuple[int | None, int | None, str | None]:
    return row.estimated_cost_nanos, row.cost_nanos, row.price_id


def _audit(order: Repricing, done: Repriced) -> None:
    RepriceAudit.objects.using(database()).create(
        actor_ref=order.by,
        reason=order.reason.strip(),
        from_at=order.start,
        to_at=order.end,
        model_id=order.model_id,
        include_estimated=order.include_estimated,
        rows_priced=done.rows,
        nanos_before=done.nanos_before,
        nanos_after=done.nanos_after,
        created_at=timezone.now(),
    )


def _foreseen(ids: Sequence[int]) -> Repriced:
    """What a batch would change, without changing it."""
    store = get_store()
    done = Repriced()
    for row in UsageEntry.objects.using(database()).filter(pk__in=ids):
        price = store.price_in_force(row.model_id, row.created_at)
        if price is None:
            done += Repriced(unpriced=row.cost_nanos is None)
            continue
        cost = row_cost(price, row, reported=None)
        if (cost.estimated_cost_nanos, cost.cost_nanos, cost.price_id) != _figures(row):
            done += Repriced(rows=1, nanos_before=row.cost_nanos or 0, nanos_after=cost.cost_nanos or 0)
    return done
