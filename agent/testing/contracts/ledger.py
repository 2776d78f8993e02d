"""LEDGER_CONTRACT (spec 02 §5.4): what model calls cost, to the nano."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from agent.domain.ledger import UsageEntry
from agent.errors import Conflict
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import ANA, answer, new_thread, price, usage
from agent.testing.contracts.store import START, StoreCase, StoreSubject, case

LEDGER_CONTRACT: list[StoreCase] = []
DOLLAR = 10**9
ALL_TIME = (START - timedelta(days=900), START + timedelta(days=900))


def costs(entry: UsageEntry) -> tuple[int | None, int | None, int | None]:
    return entry.reported_cost_nanos, entry.estimated_cost_nanos, entry.cost_nanos


@case(LEDGER_CONTRACT, "01 reported cost wins over the estimate and both are kept")
def _reported(subject: StoreSubject) -> None:
    store = subject.store
    store.supersede_price(price())
    entry = store.record_usage(usage(reported_cost_usd=Decimal("0.0000000015")))
    same(costs(entry), (2, 1_000_000, 2), "costs")
    totals = store.usage_between("ana", *ALL_TIME)
    same((totals.cost_nanos, totals.reported_cost_nanos, totals.unpriced_requests), (2, 2, 0), "totals")


@case(LEDGER_CONTRACT, "02 without a price and a report the cost is None, never 0")
def _unpriced(subject: StoreSubject) -> None:
    store = subject.store
    entry = store.record_usage(usage())
    same((costs(entry), entry.price_id), ((None, None, None), None), "costs")
    wanted = {
        "requests": 1,
        "used_tokens": 1000,
        "cost_nanos": 0,
        "reported_cost_nanos": 0,
        "unpriced_requests": 1,
        "unpriced_tokens": 1000,
    }
    same(store.usage_between("ana", *ALL_TIME), wanted, "totals")
    same(store.unpriced_usage(*ALL_TIME, 10), [entry], "unpriced_usage")


@case(LEDGER_CONTRACT, "03 a free model costs 0, which is not None")
def _free(subject: StoreSubject) -> None:
    store = subject.store
    store.supersede_price(price(0, 0))
    same(costs(store.record_usage(usage())), (None, 0, 0), "costs")
    same(store.usage_between("ana", *ALL_TIME).unpriced_requests, 0, "unpriced")


@case(LEDGER_CONTRACT, "04 cache counts are priced as subsets of input")
def _cache(subject: StoreSubject) -> None:
    store = subject.store
    store.supersede_price(price(read=DOLLAR // 10))
    same(store.record_usage(usage(cache_read_tokens=800)).cost_nanos, 280_000, "cost")


@case(LEDGER_CONTRACT, "05 a later price leaves rows alone")
def _later(subject: StoreSubject) -> None:
    store = subject.store
    old = store.supersede_price(price())
    store.record_usage(usage(run_id="run-1"))
    subject.clock.advance(1)
    store.supersede_price(price(2 * DOLLAR))
    [entry] = store.usage_of_run("run-1")
    same((entry.cost_nanos, entry.price_id), (1_000_000, old.id), "the row")
    same(store.record_usage(usage()).cost_nanos, 2_000_000, "the next row")


@case(LEDGER_CONTRACT, "06 the price in force at the instant is used, not the newest")
def _in_force(subject: StoreSubject) -> None:
    store = subject.store
    store.supersede_price(price(3 * DOLLAR, effective_from=START + timedelta(days=1)))
    store.supersede_price(price(1 * DOLLAR, effective_from=START - timedelta(days=1)))
    now = store.supersede_price(price(2 * DOLLAR, effective_from=START))
    same(store.record_usage(usage()).cost_nanos, 2_000_000, "at its own instant")
    before = store.price_in_force("m", START - timedelta(microseconds=1))
    same(before and before.input_per_million_nanos, DOLLAR, "a microsecond before")
    same(store.price_in_force("m", START - timedelta(days=2)), None, "before every price")
    same(store.list_current_prices(), [now], "list_current_prices")
    history = [row.input_per_million_nanos // DOLLAR for row in store.price_history("m")]
    same(history, [3, 2, 1], "price_history, newest first")
    same(store.price_history("nobody"), [], "of an unknown model")


@case(LEDGER_CONTRACT, "06b superseding: equal figures keep the row in force, an equal instant is a conflict")
def _supersede(subject: StoreSubject) -> None:
    store = subject.store
    first = store.supersede_price(price())
    subject.clock.advance(1)
    same(store.supersede_price(price()), first, "equal figures")
    try:
        store.supersede_price(price(2 * DOLLAR, effective_from=START))
    except Conflict:
        same(store.price_history("m"), [first], "the history")
    else:
        raise ContractMismatch("two prices of one instant")
    known = price(9 * DOLLAR, effective_from=START)
    fresh = price(9 * DOLLAR, effective_from=START - timedelta(days=1))
    same([store.seed_prices([known, fresh, fresh]), store.seed_prices([known, fresh])], [1, 0], "seeded")
    same(store.price_in_force("m", START), first, "a seed changes no row")


@case(LEDGER_CONTRACT, "07 a step key writes one row; without one every call does")
def _step_key(subject: StoreSubject) -> None:
    store = subject.store
    first = store.record_usage(usage(run_id="run-1", step_key="llm:0"))
    same(store.record_usage(usage(run_id="run-1", step_key="llm:0", input_tokens=9)), first, "again")
    store.record_usage(usage(run_id="run-1", step_key="llm:0#1.1"))
    store.record_usage(usage(run_id="run-2", step_key="llm:0"))
    for _ in range(2):
        store.record_usage(usage(run_id="run-1"))
    same([entry.step_key for entry in store.usage_of_run("run-1")], ["llm:0", "llm:0#1.1", None, None], "rows")


@case(LEDGER_CONTRACT, "07b of racing rows of one step one is written", commits=True)
def _racing_step(subject: StoreSubject) -> None:
    store = subject.store
    rows = subject.parallel([lambda: store.record_usage(usage(run_id="run-1", step_key="llm:0"))] * 4)
    expect(len({row.id for row in rows}) == 1 and len(store.usage_of_run("run-1")) == 1, "one row")


@case(LEDGER_CONTRACT, "08 a day's quota includes its first and last millisecond and excludes their neighbours")
def _quota(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    millisecond = timedelta(milliseconds=1)
    for zone in (UTC, timezone(timedelta(hours=5, minutes=30))):
        midnight = datetime(2026, 5, 4, tzinfo=zone)
        instants = [midnight - millisecond, midnight, midnight + timedelta(days=1) - millisecond]
        actor = f"ana{zone}"
        for tokens, instant in enumerate([*instants, midnight + timedelta(days=1)]):
            clock.now = instant.astimezone(UTC)
            store.record_usage(replace(usage(input_tokens=10**tokens), actor_ref=actor))
        same(store.quota_today(actor, date(2026, 5, 4), zone).used_tokens, 110, f"tokens in {zone}")
        same(store.quota_today("nobody", date(2026, 5, 4), zone).requests, 0, "of nobody")
        half_open = store.usage_between(actor, midnight, midnight + timedelta(days=1))
        same(half_open.requests, 2, "usage_between is half-open")


@case(LEDGER_CONTRACT, "09 re-pricing touches unpriced rows only, unless told otherwise, and never reported ones")
def _reprice(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    entries = [store.record_usage(usage(run_id="run-1", step_key="unpriced"))]
    clock.advance(10)
    store.supersede_price(price())
    entries.append(store.record_usage(usage(run_id="run-1", step_key="estimated")))
    reported = usage(run_id="run-1", step_key="reported", reported_cost_usd=Decimal("0.5"))
    entries.append(store.record_usage(reported))
    ids = [entry.id for entry in entries]
    same(store.reprice_usage(ids), 0, "no price was in force then")
    store.supersede_price(price(5 * DOLLAR, effective_from=START))
    same([store.reprice_usage([*ids, 10**9]), store.reprice_usage(ids)], [1, 0], "unpriced rows")
    clock.now = START
    store.seed_prices([price(3 * DOLLAR, effective_from=START + timedelta(seconds=5))])
    same(store.reprice_usage(ids, include_estimated=True), 2, "estimated rows too")
    figures = {entry.step_key: entry.cost_nanos for entry in store.usage_of_run("run-1")}
    same(figures, {"unpriced": 5_000_000, "estimated": 1_000_000, "reported": 500_000_000}, "costs")
    same(store.unpriced_usage(*ALL_TIME, 10), [], "nothing is unpriced")


@case(LEDGER_CONTRACT, "10 the sum of 10 000 rows is exact to the nano")
def _sums(subject: StoreSubject) -> None:
    store = subject.store
    with store.atomic():
        for number in range(10_000):
            cost = Decimal(number * 7_000_000_003) / 10**9
            store.record_usage(usage(input_tokens=number, reported_cost_usd=cost))
    totals = store.usage_between("ana", *ALL_TIME)
    numbers = 9_999 * 10_000 // 2
    same((totals.cost_nanos, totals.used_tokens), (numbers * 7_000_000_003, numbers), "sums")


@case(LEDGER_CONTRACT, "11 a price that is used cannot be deleted")
def _delete(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    used = store.supersede_price(price())
    store.record_usage(usage())
    clock.advance(1)
    unused = store.supersede_price(price(2 * DOLLAR))
    same([store.delete_price(unused.id), store.delete_price(unused.id)], [True, False], "an unused one")
    try:
        store.delete_price(used.id)
    except Conflict:
        same(store.price_history("m"), [used], "the history")
        return
    raise ContractMismatch("a price that a ledger row names was deleted")


@case(LEDGER_CONTRACT, "12 deleting a thread for good keeps its rows")
def _purge(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    message = answer(store, thread_id, run_id="run-1")
    store.record_usage(replace(usage(run_id="run-1"), thread_id=thread_id, message_id=message.id))
    before = store.usage_between(ANA.ref, *ALL_TIME)
    store.purge_thread(thread_id)
    same(store.usage_between(ANA.ref, *ALL_TIME), before, "totals")
    same([entry.message_id for entry in store.usage_of_run("run-1")], [message.id], "the row")


@case(LEDGER_CONTRACT, "13 a model's long or odd name is cut and cleaned")
def _names(subject: StoreSubject) -> None:
    store = subject.store
    entry = store.record_usage(replace(usage(), model_id="m" * 200 + "\x00"))
    same(entry.model_id, "m" * 128, "cut")
    same(store.record_usage(replace(usage(), model_id="a\x00b")).model_id, "a\ufffdb", "cleaned")
