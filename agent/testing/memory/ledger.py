"""Usage and prices in memory: capability `ledger`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime, time, timedelta, tzinfo

from agent.domain.commands import NewPrice, RecordUsage
from agent.domain.ledger import ModelPrice, UsageEntry, UsageTotals
from agent.domain.pricing import reported_nanos, row_cost, same_figures
from agent.domain.text import clean_cut, clean_text
from agent.errors import Conflict
from agent.testing.memory.state import State
from agent.testing.memory.unit import unit
from agent.testing.memory.values import ID, NAME, REF, WORD, cleaned, exact, fitting, listed


class Ledger(State):
    @unit
    def record_usage(self, usage: RecordUsage) -> UsageEntry:
        row = self._new_usage(usage)
        known = self._recorded(usage)
        if known is not None:
            return known
        self.last_usage_id += 1
        return self.usage.put(self.last_usage_id, replace(row, id=self.last_usage_id))

    def _new_usage(self, usage: RecordUsage) -> UsageEntry:
        """The row, priced, without a number until it is inserted."""
        now = self.clock()
        model_id = clean_cut(usage.model_id, NAME)
        reported = None if usage.reported_cost_usd is None else reported_nanos(usage.reported_cost_usd)
        cost = row_cost(self.price_in_force(model_id, now), usage, reported=reported)
        return UsageEntry(
            id=0,
            thread_id=exact("thread_id", usage.thread_id, ID),
            run_id=exact("run_id", usage.run_id, ID),
            message_id=exact("message_id", usage.message_id, ID),
            actor_ref=exact("actor_ref", usage.actor_ref, REF),
            tenant_ref=exact("tenant_ref", usage.tenant_ref, REF),
            agent_name=exact("agent_name", usage.agent_name, NAME),
            model_id=model_id,
            purpose=exact("purpose", usage.purpose, WORD),
            step_key=exact("step_key", usage.step_key, NAME),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_1h_tokens=usage.cache_write_1h_tokens,
            tokens_source=exact("tokens_source", usage.tokens_source, WORD),
            reported_cost_nanos=cost.reported_cost_nanos,
            estimated_cost_nanos=cost.estimated_cost_nanos,
            price_id=cost.price_id,
            cost_nanos=cost.cost_nanos,
            created_at=now,
        )

    def _recorded(self, usage: RecordUsage) -> UsageEntry | None:
        if usage.run_id is None or usage.step_key is None:
            return None  # as in a unique key, absent values equal nothing
        key = self.usage_of_step.first((usage.run_id, usage.step_key))
        return None if key is None else self.usage[key]

    @unit
    def usage_between(self, actor_ref: str, start: datetime, end: datetime) -> UsageTotals:
        rows = [self.usage[key] for key in self.usage_of_actor.keys(actor_ref)]
        return _totals([row for row in rows if start <= row.created_at < end])

    def quota_today(self, actor_ref: str, day: date, tz: tzinfo) -> UsageTotals:
        start = datetime.combine(day, time.min, tz)
        return self.usage_between(actor_ref, start, datetime.combine(day + timedelta(days=1), time.min, tz))

    @unit
    def usage_of_run(self, run_id: str) -> list[UsageEntry]:
        return [self.usage[key] for key in sorted(self.usage_by_run.keys(run_id))]

    @unit
    def unpriced_usage(self, start: datetime, end: datetime, limit: int) -> list[UsageEntry]:
        rows = [row for row in self.usage if row.cost_nanos is None and start <= row.created_at < end]
        return sorted(rows, key=lambda row: row.id)[: max(limit, 0)]

    @unit
    def reprice_usage(self, ids: Sequence[int], include_estimated: bool = False) -> int:
        return sum(self._reprice(key, include_estimated=include_estimated) for key in dict.fromkeys(ids))

    def _reprice(self, key: int, *, include_estimated: bool) -> bool:
        row = self.usage.get(key)
        if row is None or row.reported_cost_nanos is not None:
            return False
        if row.cost_nanos is not None and not include_estimated:
            return False
        price = self.price_in_force(row.model_id, row.created_at)
        if price is None:
            return False
        cost = row_cost(price, row, reported=None)
        self.usage.put(key, replace(row, **asdict(cost)))
        return True

    @unit
    def price_in_force(self, model_id: str, at: datetime) -> ModelPrice | None:
        exactly = self._newest(model_id, at)
        if exactly is not None:
            return exactly
        alias = self.model_aliases.get(model_id)
        return None if alias is None else self._newest(alias, at)

    def _newest(self, model_id: str, at: datetime) -> ModelPrice | None:
        prices = [price for price in self._prices(model_id) if price.effective_from <= at]
        return _shown(max(prices, key=lambda price: price.effective_from)) if prices else None

    def _prices(self, model_id: str) -> list[ModelPrice]:
        return [self.prices[key] for key in self.prices_of_model.keys(model_id)]

    @unit
    def list_current_prices(self) -> list[ModelPrice]:
        now = self.clock()
        models = sorted({price.model_id for price in self.prices})
        current = [self._newest(model_id, now) for model_id in models]
        return [price for price in current if price is not None]

    @unit
    def price_history(self, model_id: str) -> list[ModelPrice]:
        newest_first = sorted(self._prices(model_id), key=lambda price: price.effective_from, reverse=True)
        return [_shown(price) for price in newest_first]

    @unit
    def supersede_price(self, price: NewPrice) -> ModelPrice:
        row = self._new_price(price)
        standing = self._newest(row.model_id, row.effective_from)
        if standing is not None and same_figures(standing, row):
            return standing
        if self._taken(row):
            raise Conflict("The model has a price from this very instant.")
        return _shown(self.prices.put(row.id, row))

    @unit
    def seed_prices(self, prices: Iterable[NewPrice]) -> int:
        added = 0
        for price in prices:
            row = self._new_price(price)
            if not self._taken(row):
                self.prices.put(row.id, row)
                added += 1
        return added

    @unit
    def delete_price(self, price_id: str) -> bool:
        if price_id not in self.prices:
            return False
        if self.usage_by_price.first(price_id) is not None:
            raise Conflict("The ledger names this price.")
        self.prices.drop(price_id)
        return True

    def _taken(self, row: ModelPrice) -> bool:
        return any(price.effective_from == row.effective_from for price in self._prices(row.model_id))

    def _new_price(self, price: NewPrice) -> ModelPrice:
        now = self.clock()
        return ModelPrice(
            id=self.new_id(),
            model_id=exact("model_id", price.model_id, NAME),
            input_per_million_nanos=price.input_per_million_nanos,
            output_per_million_nanos=price.output_per_million_nanos,
            cache_write_per_million_nanos=price.cache_write_per_million_nanos,
            cache_read_per_million_nanos=price.cache_read_per_million_nanos,
            cache_write_1h_per_million_nanos=price.cache_write_1h_per_million_nanos,
            tiers=listed(price.tiers),
            effective_from=price.effective_from or now,
            source=clean_text(fitting("source", price.source, 128)),
            created_by_ref=exact("created_by_ref", price.created_by_ref, REF),
            note=cleaned(price.note),
            created_at=now,
        )


def _shown(price: ModelPrice) -> ModelPrice:
    return price if price.tiers is None else replace(price, tiers=listed(price.tiers))


def _totals(rows: Sequence[UsageEntry]) -> UsageTotals:
    unpriced = [row for row in rows if row.cost_nanos is None]
    return UsageTotals(
        requests=len(rows),
        used_tokens=sum(row.input_tokens + row.output_tokens for row in rows),
        cost_nanos=sum(row.cost_nanos or 0 for row in rows),
        reported_cost_nanos=sum(row.reported_cost_nanos or 0 for row in rows),
        unpriced_requests=len(unpriced),
        unpriced_tokens=sum(row.input_tokens + row.output_tokens for row in unpriced),
    )
