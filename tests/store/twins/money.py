"""The ledger, prices, and idempotency keys."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from decimal import Decimal

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from agent.domain.commands import NewPrice, RecordUsage
from agent.domain.snapshots import Json
from agent.store.base import AgentStore
from agent.testing.contracts.store import START
from tests.store.twins.machine import Twins, json_values, limits, refs, runs, texts

models = st.sampled_from(["model", "model", "Model", "alias"])
offsets = st.sampled_from([None, -9000, -3600, -1, 0, 60])
counts = st.integers(0, 3000)
zones = st.sampled_from([UTC, timezone(timedelta(hours=-9)), timezone(timedelta(hours=13))])
keys = st.sampled_from(["k", "K", "k" * 256])
ALL_TIME = (START - timedelta(days=9), START + timedelta(days=9))


class Money(Twins):
    @initialize()
    def three_rows(self) -> None:
        """A row without a price, one with an estimate, and one that the provider priced."""
        rows = [
            RecordUsage(thread_id="thread", actor_ref="ana", model_id="model", purpose="chat", input_tokens=700),
            RecordUsage(thread_id="thread", actor_ref="ana", model_id="alias", purpose="chat", output_tokens=300),
            RecordUsage(
                thread_id="thread", actor_ref="bo", model_id="model", purpose="chat", reported_cost_usd=Decimal("0.1")
            ),
        ]
        self.both(lambda store: store.record_usage(rows[0]))
        self.clock.advance(10)
        self.both(lambda store: store.supersede_price(self._price("model", 10**9, None, None, None)))
        for row in rows[1:]:
            self.both(lambda store, row=row: store.record_usage(row))  # type: ignore[misc]

    @rule(
        ref=refs,
        model=models | st.just("m\x00" * 100),
        run=st.none() | runs,
        step=st.sampled_from([None, "llm:0", "llm:1"]),
        tokens=st.tuples(counts, counts),
        cached=st.tuples(st.none() | counts, st.none() | counts, st.none() | counts),
        reported=st.sampled_from([None, None, Decimal(0), Decimal("0.0000000005"), Decimal("1.25")]),
        undo=st.booleans(),
    )
    def record_usage(
        self,
        ref: str,
        model: str,
        run: str | None,
        step: str | None,
        tokens: tuple[int, int],
        cached: tuple[int | None, int | None, int | None],
        reported: Decimal | None,
        undo: bool,
    ) -> None:
        usage = RecordUsage(
            thread_id="thread",
            actor_ref=ref,
            model_id=model,
            purpose="chat",
            run_id=run,
            step_key=step,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            cache_write_tokens=cached[0],
            cache_read_tokens=cached[1],
            cache_write_1h_tokens=cached[2],
            reported_cost_usd=reported,
        )
        self.both(lambda store: store.record_usage(usage), undo=undo)

    def _price(self, model: str, rate: int, offset: int | None, cached: int | None, tier: int | None) -> NewPrice:
        return NewPrice(
            model_id=model,
            input_per_million_nanos=rate,
            output_per_million_nanos=2 * rate,
            cache_read_per_million_nanos=cached,
            tiers=None if tier is None else [{"aboveInputTokens": tier, "inputPerMillionNanos": 3 * rate}],
            effective_from=None if offset is None else self.clock.now + timedelta(seconds=offset),
        )

    @rule(
        model=models,
        rate=st.sampled_from([0, 10**9, 333_333_333]),
        offset=offsets,
        cached=st.sampled_from([None, 0, 5]),
        tier=st.sampled_from([None, 0, 1000]),
        seed=st.booleans(),
        undo=st.sampled_from([False, False, True]),
    )
    def price(
        self,
        model: str,
        rate: int,
        offset: int | None,
        cached: int | None,
        tier: int | None,
        seed: bool,
        undo: bool,
    ) -> None:
        new = self._price(model, rate, offset, cached, tier)
        if seed:
            other = self._price(model, rate + 1, 5, None, None)
            self.both(lambda store: store.seed_prices([new, other, new]), undo=undo)
        else:
            self.both(lambda store: store.supersede_price(new), undo=undo)

    @rule(model=models, place=st.integers(0, 2))
    def delete_price(self, model: str, place: int) -> None:
        history = self.memory.price_history(model)
        price_id = history[place].id if place < len(history) else "nobody"
        self.both(lambda store: store.delete_price(price_id))

    @rule(
        rows=st.sampled_from([[], [3, 1, 3], list(range(20)), list(range(20))]),
        include_estimated=st.booleans(),
        undo=st.booleans(),
    )
    def reprice(self, rows: list[int], include_estimated: bool, undo: bool) -> None:
        def told(store: AgentStore) -> Json:
            return store.reprice_usage([self.usage_id(store, row) for row in rows], include_estimated)

        self.both(told, undo=undo)

    @rule(ref=refs, zone=zones, hours=st.integers(0, 2), limit=limits)
    def report(self, ref: str, zone: timezone, hours: int, limit: int) -> None:
        start, end = self.clock.now - timedelta(hours=hours), self.clock.now
        self.both(lambda store: store.usage_between(ref, start, end))
        self.both(lambda store: store.quota_today(ref, self.clock.now.astimezone(zone).date(), zone))
        self.both(lambda store: store.unpriced_usage(start, end, limit))

    @rule(ref=refs, key=keys, fingerprint=st.sampled_from(["f" * 64, "0" * 64]), undo=st.booleans())
    def claim_key(self, ref: str, key: str, fingerprint: str, undo: bool) -> None:
        self.both(lambda store: store.claim_idempotency_key(ref, key, fingerprint), undo=undo)

    @rule(ref=refs, key=keys, run=st.none() | runs, outcome=json_values)
    def save_key(self, ref: str, key: str, run: str | None, outcome: Json) -> None:
        self.both(
            lambda store: store.save_idempotency_outcome(
                ref, key, thread_id=None, run_id=run, message_id=None, outcome={"value": outcome}
            )
        )

    @rule(age=st.sampled_from([0, 30, 3600]), text=texts)
    def purge_keys(self, age: int, text: str) -> None:
        self.both(lambda store: store.purge_idempotency_keys(self.clock.now - timedelta(seconds=age)))
        self.both(lambda store: store.find_idempotency_key("ana", text))

    def compare_everything(self) -> None:
        for run in ("run-0", "run-1", "run-2", "run-3"):
            self.both(lambda store, key=run: store.usage_of_run(key))  # type: ignore[misc]
        for ref in ("ana", "Ana", "bo"):
            self.both(lambda store, key=ref: store.usage_between(key, *ALL_TIME))  # type: ignore[misc]
            for name in ("k", "K"):
                self.both(lambda store, key=ref, name=name: store.find_idempotency_key(key, name))  # type: ignore[misc]
        for model in ("model", "Model", "alias"):
            self.both(lambda store, key=model: store.price_history(key))  # type: ignore[misc]
            self.both(lambda store, key=model: store.price_in_force(key, self.clock.now))  # type: ignore[misc]
        self.both(lambda store: store.list_current_prices())
        super().compare_everything()
