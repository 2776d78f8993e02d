"""Prices and limits: what is in force, a new price, and how much of somebody's quota is used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agent.admin.scope import scope_of
from agent.api.parsing import query_text, read_body
from agent.domain.clock import wire_time
from agent.domain.commands import NewPrice
from agent.domain.ledger import ModelPrice
from agent.domain.pricing import NANOS_PER_USD, usd
from agent.errors import Invalid
from agent.flows import prices
from agent.store import get_store
from governance.api import asking
from governance.api.base import ConsoleView, operation, wants_csv
from governance.limits import report_of
from governance.permissions import CHANGE_PRICES, PRICES, SPEND
from governance.wire import schema

Shape = serializers.Serializer[dict[str, Any]]
PLACES = 9
FIELDS: Mapping[str, str] = {field: attribute for attribute, field in prices.FIGURES.items()}
TEXTS = ("modelId", "effectiveFrom", "note")
_PLAIN = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?\Z")  # Decimal would take 1_0 for ten
REQUIRED = ("modelId", "inputPer1M", "outputPer1M")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """A price on the wire, US dollars a million tokens."""

    model_id: str
    input_per1_m: float
    output_per1_m: float
    cache_write_per1_m: float | None
    cache_write1h_per1_m: float | None
    cache_read_per1_m: float | None
    effective_from: datetime
    is_current: bool
    source: str
    note: str | None


class NewPriceShape(Shape):
    """US dollars for a million tokens, up to nine places."""

    modelId = serializers.CharField(max_length=128)
    inputPer1M = serializers.FloatField(min_value=0)
    outputPer1M = serializers.FloatField(min_value=0)
    cacheWritePer1M = serializers.FloatField(min_value=0, required=False, allow_null=True)
    cacheWrite1hPer1M = serializers.FloatField(min_value=0, required=False, allow_null=True)
    cacheReadPer1M = serializers.FloatField(min_value=0, required=False, allow_null=True)
    effectiveFrom = serializers.DateTimeField(required=False, allow_null=True)
    note = serializers.CharField(required=False, allow_null=True)


PRICE: Mapping[str, Any] = schema(PriceRow)
LIST: Mapping[str, Any] = {"type": "array", "items": PRICE}


class PricingView(ConsoleView):
    def needed(self, request: Request) -> tuple[str, ...]:
        return (CHANGE_PRICES,) if request.method == "POST" else (PRICES,)

    @operation(
        "pricing",
        "Prices in force",
        needs=(PRICES,),
        answer={"type": "object", "properties": {"current": LIST, "history": LIST}},
        parameters=[OpenApiParameter("modelId", str, description="Also the history of this model; as CSV it alone.")],
    )
    def get(self, request: Request) -> Any:  # noqa: ANN401  (an answer, or a stream)
        asking.only(request, "modelId")
        model_id, store = query_text(request, "modelId"), get_store()
        current = store.list_current_prices()
        if wants_csv(request):
            return self.csv(request, "pricing", ModelPrice, store.price_history(model_id) if model_id else current)
        now = {price.id for price in current}
        told: dict[str, Any] = {"current": [_wire(price, now) for price in current]}
        if model_id is not None:
            told["history"] = [_wire(price, now) for price in store.price_history(model_id)]
        return Response(told)

    @operation(
        "pricing_supersede",
        "Put a price in force",
        needs=(CHANGE_PRICES,),
        answer=PRICE,
        status=201,
        errors={409: "There is a price of the model from this very instant.", 413: "", 415: ""},
        request=NewPriceShape,
        rows=False,
    )
    def post(self, request: Request) -> Response:
        """Effective now, or from the given instant on. An earlier one touches no row that is written already."""
        price = prices.supersede(_new_price(read_body(request), by=self.actor.ref))
        return Response(_wire(price, {each.id for each in get_store().list_current_prices()}), status=201)


class QuotaView(ConsoleView):
    needs = (SPEND,)

    @operation(
        "quota",
        "The limits of a person",
        needs=needs,
        answer={"type": "object"},
        parameters=[OpenApiParameter("actor", str, required=True, description="The ref of the person.")],
        errors={404: "Nobody of that ref is known to the site."},
        rows=False,
    )
    def get(self, request: Request) -> Response:
        asking.only(request, "actor")
        ref = query_text(request, "actor")
        if ref is None:
            raise Invalid.field("actor", "the ref of a person")
        return Response(report_of(ref, scope_of(request._request)))


def _wire(price: ModelPrice, current: set[str]) -> dict[str, Any]:
    figures = {field: getattr(price, attribute) for field, attribute in FIELDS.items()}
    return {
        "modelId": price.model_id,
        **{field: None if nanos is None else usd(nanos) for field, nanos in figures.items()},
        "effectiveFrom": wire_time(price.effective_from),
        "isCurrent": price.id in current,
        "source": price.source,
        "note": price.note,
    }


def _new_price(body: Mapping[str, Any], *, by: str) -> NewPrice:
    unknown = body.keys() - {*FIELDS, *TEXTS}
    if unknown:
        raise Invalid.field(sorted(unknown)[0], f"not known; there are {', '.join([*TEXTS, *FIELDS])}")
    for name in REQUIRED:
        if body.get(name) is None:
            raise Invalid.field(name, "required")
    for name in TEXTS:
        if body.get(name) is not None and not isinstance(body[name], str):
            raise Invalid.field(name, "text")
    figures: dict[str, Any] = {attribute: _nanos(field, body.get(field)) for field, attribute in FIELDS.items()}
    return NewPrice(
        model_id=body["modelId"],
        effective_from=_instant(body.get("effectiveFrom")),
        note=body.get("note"),
        source="api",
        created_by_ref=by,
        **figures,
    )


def _nanos(field: str, value: object) -> int | None:
    """US dollars as nanos, without a float's error: nine places or fewer, as they were written."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Invalid.field(field, "a number of US dollars")
    try:
        if isinstance(value, str) and not _PLAIN.match(value):
            raise InvalidOperation
        amount = Decimal(str(value)) * NANOS_PER_USD
        if not amount.is_finite() or amount != amount.to_integral_value():
            raise InvalidOperation
    except InvalidOperation:
        raise Invalid.field(field, f"a number of US dollars with at most {PLACES} places") from None
    return int(amount)


def _instant(value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is None:
            raise ValueError
    except ValueError:
        raise Invalid.field("effectiveFrom", "an instant with its time zone, as 2026-11-30T12:00:00Z") from None
    return at
