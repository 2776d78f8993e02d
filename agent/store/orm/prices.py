"""Capability `ledger`: dated prices. A row is never edited; the newest that is effective is in force."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime

from django.db.models import Case, ProtectedError, Value, When

from agent.domain.commands import NewPrice
from agent.domain.ledger import ModelPrice as PriceValue
from agent.domain.pricing import same_figures
from agent.errors import Conflict
from agent.models import ModelPrice
from agent.models.inserts import Draft, Insert
from agent.models.prepared import Select, Slot
from agent.store.orm import rows
from agent.store.orm.unit import OrmUnit

_insert = Insert(ModelPrice)
_NEW = tuple(field.name for field in fields(NewPrice))
_in_force = Select(
    lambda: (
        ModelPrice.objects.filter(model_id=Slot("model"), effective_from__lte=Slot("at"))
        .order_by("-effective_from")
        .values_list(*rows.PRICE)[:1]
    )
)
_named_first = Case(When(model_id=Slot("model"), then=Value(0)), default=Value(1))
_in_force_or_alias = Select(
    lambda: (
        ModelPrice.objects.filter(model_id__in=[Slot("model"), Slot("alias")], effective_from__lte=Slot("at"))
        .order_by(_named_first, "-effective_from")
        .values_list(*rows.PRICE)[:1]
    )
)


class OrmPrices(OrmUnit):
    def price_in_force(self, model_id: str, at: datetime) -> PriceValue | None:
        alias = self._alias_of(model_id)
        if alias is None:
            return self._in_force(model_id, at)
        row = _in_force_or_alias.first(self.db, model=model_id, alias=alias, at=at)
        return None if row is None else rows.price(dict(zip(rows.PRICE, row, strict=True)))

    def _in_force(self, model_id: str, at: datetime) -> PriceValue | None:
        row = _in_force.first(self.db, model=model_id, at=at)
        return None if row is None else rows.price(dict(zip(rows.PRICE, row, strict=True)))

    def list_current_prices(self) -> list[PriceValue]:
        effective = ModelPrice.objects.using(self.db).in_force(self.clock()).order_by("model_id", "effective_from")
        newest = {row["model_id"]: row for row in effective.values(*rows.PRICE)}
        return [rows.price(newest[model_id]) for model_id in sorted(newest)]

    def price_history(self, model_id: str) -> list[PriceValue]:
        prices = ModelPrice.objects.using(self.db).of_model(model_id).order_by("-effective_from")
        return [rows.price(row) for row in prices.values(*rows.PRICE)]

    def supersede_price(self, price: NewPrice) -> PriceValue:
        draft = self._price_draft(price)
        new = rows.price(draft.stored)
        with self.joined():
            standing = self._in_force(new.model_id, new.effective_from)
            if standing is not None and same_figures(standing, new):
                return standing
            stored = _insert.new(self.db, draft)
        if stored is None:
            raise Conflict("The model has a price from this very instant.")
        return new

    def seed_prices(self, prices: Iterable[NewPrice]) -> int:
        with self.joined():
            return sum(_insert.new(self.db, self._price_draft(price)) is not None for price in prices)

    def _price_draft(self, price: NewPrice) -> Draft:
        now = self.clock()
        values = {name: getattr(price, name) for name in _NEW}
        values |= {
            "id": self.new_id(),
            "tiers": price.tiers or None,
            "effective_from": price.effective_from or now,
            "created_at": now,
        }
        return _insert.draft(self.db, values)

    def delete_price(self, price_id: str) -> bool:
        with self.joined():
            try:
                deleted, _ = ModelPrice.objects.using(self.db).filter(pk=price_id).delete()
            except ProtectedError:
                deleted = -1
        if deleted < 0:
            raise Conflict("The ledger names this price.")
        return deleted == 1
