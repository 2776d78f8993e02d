"""Dated prices from the installed price data (extra `prices`): inserted, never changed (spec 08 §3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from agent.conf import agent_settings
from agent.domain.commands import NewPrice
from agent.domain.ledger import ModelPrice
from agent.domain.pricing import NANOS_PER_USD, same_figures
from agent.errors import NotSupported
from agent.models import UsageEntry
from agent.store import get_store

if TYPE_CHECKING:
    from genai_prices import types as prices

DATA = "genai-prices"
ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)  # a price without a date has always been in force
RECENTLY = timedelta(days=400)
# Makers before hosts: a name that a host serves too has its maker's price.
MAKERS = ("openai", "anthropic", "google", "mistral", "deepseek", "x-ai", "cohere", "perplexity")
SEED = "seed:"
RATES: Mapping[str, str] = {
    "input_mtok": "input_per_million_nanos",
    "output_mtok": "output_per_million_nanos",
    "cache_write_mtok": "cache_write_per_million_nanos",
    "cache_write_1h_mtok": "cache_write_1h_per_million_nanos",
    "cache_read_mtok": "cache_read_per_million_nanos",
}
IN_TIERS: Mapping[str, str] = {
    "input_mtok": "inputPerMillionNanos",
    "output_mtok": "outputPerMillionNanos",
    "cache_write_mtok": "cacheWritePerMillionNanos",
    "cache_write_1h_mtok": "cacheWrite1hPerMillionNanos",
    "cache_read_mtok": "cacheReadPerMillionNanos",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    """What a run of the command did: the rows it added, and the models whose prices people have set."""

    version: str
    added: Sequence[NewPrice]
    kept: Sequence[str]
    unknown: Sequence[str]


def seed(models: Iterable[str] = ()) -> Seeded:
    """Insert what is missing of these models' prices; without any, of all that the data names and the ledger used.

    A price that somebody has set stays in force: no seed is put in front of it.
    """
    book = _Book()
    named = tuple(models)
    wanted = [*named] if named else sorted({*book.names(), *_used_models()})
    store, now = get_store(), timezone.now()
    added: list[NewPrice] = []
    kept, unknown = [], []
    for model_id in wanted:
        found = book.prices_of(model_id)
        if not found:
            unknown.append(model_id)
            continue
        with store.atomic():
            new, is_ours = _missing(found, store.price_history(model_id), now)
            store.seed_prices(new)
        added += new
        if is_ours:
            kept.append(model_id)
    return Seeded(version=book.version, added=added, kept=kept, unknown=unknown if named else ())


def _missing(found: Sequence[NewPrice], standing: Sequence[ModelPrice], now: datetime) -> tuple[list[NewPrice], bool]:
    """The prices to insert, and whether some were left out for one that people have set."""
    taken = {price.effective_from for price in standing}
    new, is_ours = [], False
    for price in found:
        since = price.effective_from or ALWAYS
        before = next((each for each in standing if each.effective_from <= since), None)
        if since in taken:
            continue
        if before is not None and not before.source.startswith(SEED):
            is_ours = True
        else:
            new.append(price)
    corrected = _corrected(found, standing, now)
    return [*new, *([corrected] if corrected and not new else [])], is_ours


def _corrected(found: Sequence[NewPrice], standing: Sequence[ModelPrice], now: datetime) -> NewPrice | None:
    """The data's price of today where an older version of the data said another: in force from now on."""
    told = max(
        (price for price in found if (price.effective_from or ALWAYS) <= now),
        key=lambda price: price.effective_from or ALWAYS,
        default=None,
    )
    ours = next((each for each in standing if each.effective_from <= now), None)
    if told is None or ours is None or not ours.source.startswith(SEED) or ours.source == told.source:
        return None
    values = {name: getattr(told, name) for name in (*RATES.values(), "tiers")}
    return None if same_figures(ours, replace(ours, **values)) else replace(told, effective_from=now)


def _used_models() -> Iterator[str]:
    """Names that providers answered with: dated ids among them, which the data knows by a rule."""
    recent = UsageEntry.objects.filter(created_at__gte=timezone.now() - RECENTLY)
    yield from recent.order_by().values_list("model_id", flat=True).distinct()
    yield from (model.id for model in agent_settings().models)


class _Book:
    """The price data by model name."""

    def __init__(self) -> None:
        try:
            from genai_prices.data import providers

            self.version = version(DATA)
        except (ImportError, PackageNotFoundError):
            raise NotSupported('Price data is not installed: pip install "django-steward[prices]".') from None
        by_id = {provider.id: provider for provider in providers}
        self._makers = [by_id[name] for name in MAKERS if name in by_id]
        self._hosts = [provider for provider in providers if provider.id not in MAKERS]
        self._named: dict[str, tuple[prices.Provider, prices.ModelInfo]] = {}
        for provider in (*self._makers, *self._hosts):
            for model in provider.models:
                self._named.setdefault(model.id, (provider, model))
        for provider in self._makers:
            for model in provider.models:
                for name in _equal_names(model.match):
                    self._named.setdefault(name, (provider, model))

    def names(self) -> set[str]:
        """Every model of the makers by its id and by the other names that mean exactly it."""
        return {name for name, (provider, _) in self._named.items() if provider.id in MAKERS}

    def prices_of(self, model_id: str) -> list[NewPrice]:
        """The dated prices of a name, oldest first; nothing where no maker knows it, or only by the hour.

        A name that is no model's own is looked up by the data's rules (`claude-x-20260101` is a `claude-x`), which the
        note of the price names; those of hosts are too wide for that.
        """
        provider, model = self._named.get(model_id) or self._by_rule(model_id)
        if provider is None or model is None:
            return []
        dated = [(since, rates) for since, rates in _dated(model.prices) if _charges_tokens(rates)]
        return [self._price(model_id, rates, since, f"{provider.id}: {model.id}") for since, rates in dated]

    def _by_rule(self, model_id: str) -> tuple[prices.Provider | None, prices.ModelInfo | None]:
        for provider in self._makers:
            if (model := provider.find_model(model_id)) is not None:
                return provider, model
        return None, None

    def _price(self, model_id: str, rates: prices.ModelPrice, since: datetime, note: str) -> NewPrice:
        base = {ours: _nanos(_rate(rates, name, 0)) for name, ours in RATES.items()}
        base = {name: nanos for name, nanos in base.items() if nanos is not None}
        base.setdefault("output_per_million_nanos", 0)  # embeddings have no output
        given: dict[str, Any] = {**base, "tiers": _tiers(rates) or None}
        source = f"{SEED}{self.version}"
        return NewPrice(model_id=model_id, effective_from=since, source=source, note=note, **given)


def _charges_tokens(rates: prices.ModelPrice) -> bool:
    return rates.input_mtok is not None


def _dated(
    given: prices.ModelPrice | Sequence[prices.ConditionalPrice],
) -> Iterator[tuple[datetime, prices.ModelPrice]]:
    """Prices with the instant from which each is in force; those of certain hours of the day cannot be kept."""
    if not isinstance(given, list):
        yield ALWAYS, given  # type: ignore[misc]
        return
    if any(one.constraint is not None and not hasattr(one.constraint, "start_date") for one in given):
        return
    for one in given:
        since = getattr(one.constraint, "start_date", None)
        yield datetime.combine(since, time.min, UTC) if since else ALWAYS, one.prices


def _tiers(rates: prices.ModelPrice) -> list[dict[str, Any]]:
    """Every bound that any of the rates has, with all the rates above it."""
    bounds = {tier.start for name in RATES for tier in getattr(getattr(rates, name), "tiers", ())}
    return [
        {"aboveInputTokens": bound}
        | {key: nanos for name, key in IN_TIERS.items() if (nanos := _nanos(_rate(rates, name, bound + 1))) is not None}
        for bound in sorted(bounds)
    ]


def _rate(rates: prices.ModelPrice, name: str, input_tokens: int) -> Decimal | None:
    """What one kind of token costs a million in a call of that many input tokens."""
    rate: Any = getattr(rates, name)
    if rate is None or isinstance(rate, Decimal):
        return rate
    above = [tier for tier in rate.tiers if input_tokens > tier.start]
    price: Decimal = max(above, key=lambda tier: tier.start).price if above else rate.base
    return price


def _nanos(usd: Decimal | None) -> int | None:
    return None if usd is None else int((usd * NANOS_PER_USD).to_integral_value(ROUND_HALF_UP))


def _equal_names(clause: object) -> Iterator[str]:
    """The names that a match rule spells out: a rule that only knows how a name begins names nothing."""
    either: Iterable[object] = getattr(clause, "or_", ())
    for each in either:
        yield from _equal_names(each)
    name = getattr(clause, "equals", None)
    if isinstance(name, str):
        yield name
