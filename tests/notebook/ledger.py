"""The capability `ledger` in dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any

from agent.domain.commands import NewPrice, RecordUsage
from agent.domain.ledger import ModelPrice, UsageEntry, UsageTotals
from agent.domain.pricing import reported_nanos, row_cost, same_figures
from agent.domain.text import clean_cut
from agent.errors import Conflict
from tests.notebook.book import Book, alone, ident, name, own, text

IDS = {"thread_id", "run_id", "message_id"}
NAMES = {"actor_ref", "tenant_ref", "agent_name", "purpose", "step_key", "tokens_source"}


class Ledger(Book):
    @alone
    def record_usage(self, usage: RecordUsage) -> UsageEntry:
        given = {each.name: _stored(each.name, getattr(usage, each.name)) for each in fields(usage)}
        if usage.run_id is not None and usage.step_key is not None:
            for row in self.usage.values():
                if (row.run_id, row.step_key) == (usage.run_id, usage.step_key):
                    return row
        now, reported = self.clock(), given.pop("reported_cost_usd")
        price = self.price_in_force(given["model_id"], now)
        cost = row_cost(price, usage, reported=None if reported is None else reported_nanos(reported))
        row = UsageEntry(**given, **asdict(cost), id=len(self.usage) + 1, created_at=now)
        self.usage[row.id] = row
        return row

    @alone
    def usage_between(self, actor_ref: str, start: datetime, end: datetime) -> UsageTotals:
        rows = [row for row in self.usage.values() if row.actor_ref == actor_ref and start <= row.created_at < end]
        unpriced = [row for row in rows if row.cost_nanos is None]
        return UsageTotals(
            requests=len(rows),
            used_tokens=_tokens(rows),
            cost_nanos=sum(row.cost_nanos or 0 for row in rows),
            reported_cost_nanos=sum(row.reported_cost_nanos or 0 for row in rows),
            unpriced_requests=len(unpriced),
            unpriced_tokens=_tokens(unpriced),
        )

    def quota_today(self, actor_ref: str, day: date, tz: tzinfo) -> UsageTotals:
        begins = [datetime.combine(day + timedelta(days=after), time.min, tz) for after in (0, 1)]
        return self.usage_between(actor_ref, *begins)

    @alone
    def usage_of_run(self, run_id: str) -> list[UsageEntry]:
        return [row for row in self.usage.values() if row.run_id == run_id]

    @alone
    def unpriced_usage(self, start: datetime, end: datetime, limit: int) -> list[UsageEntry]:
        rows = [row for row in self.usage.values() if row.cost_nanos is None and start <= row.created_at < end]
        return rows[: max(limit, 0)]

    def reprice_usage(self, ids: Sequence[int], include_estimated: bool = False) -> int:
        with self.atomic():
            rows = [self.usage[key] for key in dict.fromkeys(ids) if key in self.usage]
            open_ = [row for row in rows if row.reported_cost_nanos is None]
            return sum(self._reprice(row) for row in open_ if include_estimated or row.cost_nanos is None)

    def _reprice(self, row: UsageEntry) -> bool:
        price = self.price_in_force(row.model_id, row.created_at)
        if price is not None:
            self.usage[row.id] = replace(row, **asdict(row_cost(price, row, reported=None)))
        return price is not None

    @alone
    def price_in_force(self, model_id: str, at: datetime) -> ModelPrice | None:
        return next((price for price in self.price_history(model_id) if price.effective_from <= at), None)

    @alone
    def list_current_prices(self) -> list[ModelPrice]:
        models = sorted({price.model_id for price in self.prices.values()})
        current = [self.price_in_force(model, self.clock()) for model in models]
        return [price for price in current if price is not None]

    @alone
    def price_history(self, model_id: str) -> list[ModelPrice]:
        """Newest first."""
        found = [price for price in self.prices.values() if price.model_id == model_id]
        found.sort(key=lambda price: price.effective_from, reverse=True)
        return [replace(price, tiers=own(price.tiers)) for price in found]

    @alone
    def supersede_price(self, price: NewPrice) -> ModelPrice:
        row = self._new_price(price)
        standing = self.price_in_force(row.model_id, row.effective_from)
        if standing is not None and same_figures(standing, row):
            return standing
        if self._is_taken(row):
            raise Conflict("The model has a price from this very instant.")
        self.prices[row.id] = row
        return replace(row, tiers=own(row.tiers))

    def seed_prices(self, prices: Iterable[NewPrice]) -> int:
        with self.atomic():
            before = len(self.prices)
            for row in map(self._new_price, prices):
                if not self._is_taken(row):
                    self.prices[row.id] = row
            return len(self.prices) - before

    @alone
    def delete_price(self, price_id: str) -> bool:
        if any(row.price_id == price_id for row in self.usage.values()):
            raise Conflict("The ledger names this price.")
        return self.prices.pop(price_id, None) is not None

    def _is_taken(self, row: ModelPrice) -> bool:
        return any(price.effective_from == row.effective_from for price in self.price_history(row.model_id))

    def _new_price(self, price: NewPrice) -> ModelPrice:
        now = self.clock()
        columns: dict[str, Any] = {
            **{each.name: getattr(price, each.name) for each in fields(price)},
            "model_id": name(price.model_id, 128),
            "tiers": own(price.tiers) or None,
            "effective_from": price.effective_from or now,
            "note": text(price.note),
        }
        return ModelPrice(**columns, id=self.new_id(), created_at=now)


def _tokens(rows: Sequence[UsageEntry]) -> int:
    return sum(row.input_tokens + row.output_tokens for row in rows)


def _stored(column: str, value: Any) -> Any:
    if column == "model_id":
        return clean_cut(value, 128)
    if column in IDS:
        return ident(value)
    return name(value) if column in NAMES else value
