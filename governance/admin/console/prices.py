"""Prices: what a million tokens cost now and cost before, what has no price, and the two ways to put that right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agent.domain.ledger import ModelPrice
from agent.errors import Conflict, Invalid
from agent.flows.prices import supersede
from governance.admin.console import words
from governance.admin.console.base import Load, Screen, Visit
from governance.admin.console.cells import time_cell
from governance.admin.console.parts import Answer, Cell, Empty, Head, Row, Said, Table
from governance.admin.console.price_forms import PriceForm, RepriceForm
from governance.permissions import CHANGE_PRICES, REPRICE
from governance.queries.cuts import Unpriced, current_prices, price_history, unpriced_models
from governance.repricing import Repriced, reprice

FIELD_OF = {
    "modelId": "model_id",
    "inputPer1M": "input",
    "outputPer1M": "output",
    "cacheWritePer1M": "cache_write",
    "cacheWrite1hPer1M": "cache_write_1h",
    "cacheReadPer1M": "cache_read",
    "effectiveFrom": "effective_from",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A form of this page; `told` is what it would do, before it is done."""

    form: forms.Form
    told: str = ""


class PricesScreen(Screen):
    page = "prices"
    template = "governance/console/prices.html"
    own = ("modelId",)
    tables = {
        "prices": lambda visit: (ModelPrice, current_prices()),
        "history": lambda visit: (ModelPrice, price_history(visit.asked.own.get("modelId", ""))),
        "unpriced": lambda visit: (Unpriced, unpriced_models(visit.selection)),
    }

    def parts(self, visit: Visit) -> Mapping[str, Load]:
        prices, missing = cache(current_prices), cache(partial(unpriced_models, visit.selection))
        chosen = visit.asked.own.get("modelId")
        history: Mapping[str, Load] = {"history": lambda visit: _history(visit, str(chosen))} if chosen else {}
        return {
            "answer": lambda visit: _answer(visit, prices(), missing()),
            "missing": lambda visit: _missing(visit, missing()),
            "table": lambda visit: _current(visit, prices()),
            **history,
            "superseding": lambda visit: _superseding(chosen) if visit.may(CHANGE_PRICES) else None,
            "repricing": lambda visit: Act(form=RepriceForm()) if visit.may(REPRICE) else None,
        }

    # ---- what it changes ----------------------------------------------------------------------------------------

    def post(self, visit: Visit) -> HttpResponseBase:
        act = visit.request.POST.get("act")
        if act == "supersede":
            return self._supersede(visit)
        if act == "reprice":
            return self._reprice(visit)
        raise Invalid.field("act", "supersede or reprice")

    def _supersede(self, visit: Visit) -> HttpResponseBase:
        if not visit.may(CHANGE_PRICES):
            raise PermissionDenied
        form = PriceForm(visit.request.POST)
        if form.is_valid():
            try:
                price = supersede(form.price(str(visit.request.user.pk)))
            except (Invalid, Conflict) as error:
                _tell(form, error)
            else:
                told = gettext("%(model)s has its new price from %(time)s on. Rows already written keep theirs.")
                said = {"model": price.model_id, "time": words.exact_time(price.effective_from)}
                messages.success(visit.request, told % said)
                return self._back(visit)
        return self._again(visit, superseding=Act(form=form))

    def _reprice(self, visit: Visit) -> HttpResponseBase:
        """The first time it says what it would do; with `sure` it does it."""
        if not visit.may(REPRICE):
            raise PermissionDenied
        form = RepriceForm(visit.request.POST)
        if not form.is_valid():
            return self._again(visit, repricing=Act(form=form))
        order, sure = form.order(str(visit.request.user.pk), visit.selection.tenants), "sure" in visit.request.POST
        try:
            done = reprice(order, dry_run=not sure)
        except Invalid as error:
            form.add_error(None, error.message)
            return self._again(visit, repricing=Act(form=form))
        if not sure:
            return self._again(visit, status=200, repricing=Act(form=form, told=_foreseen(done)))
        messages.success(visit.request, _done(done))
        return self._back(visit)

    def _back(self, visit: Visit) -> HttpResponse:
        return HttpResponseRedirect(visit.url("prices") + visit.asked.query())

    def _again(self, visit: Visit, *, status: int = 400, **acts: Act) -> HttpResponse:
        changed: dict[str, Load] = {name: _always(act) for name, act in acts.items()}
        return self.show(visit, self.template, {**self.parts(visit), **changed}, status=status)


def _always(act: Act) -> Load:
    return lambda visit: act


def _superseding(model: str | None) -> Act:
    """An empty form, or the price that is to be superseded in it; tiers are not taken along, and it says so."""
    price = next(iter(price_history(model)), None) if model else None
    if price is None:
        return Act(form=PriceForm(initial={"model_id": model} if model else None))
    initial: dict[str, Any] = {"model_id": model}
    for name in ("input", "output", "cache_write", "cache_write_1h", "cache_read"):
        initial[name] = words.plain_dollars(getattr(price, f"{name}_per_million_nanos"))
    tiers = gettext("This price is higher for long inputs (tiers). The new one will be the same for all.")
    return Act(form=PriceForm(initial=initial), told=tiers if price.tiers else "")


def _tell(form: PriceForm, error: Invalid | Conflict) -> None:
    """What the flow refuses, beside the field it is about."""
    if isinstance(error, Invalid) and error.fields:
        for name, texts in error.fields.items():
            form.add_error(FIELD_OF.get(name), list(texts))
    else:
        form.add_error(None, error.message)


def _foreseen(done: Repriced) -> str:
    told = ngettext(
        "%(n)s row would change, from %(before)s to %(after)s; %(left)s would stay unpriced.",
        "%(n)s rows would change, from %(before)s to %(after)s; %(left)s would stay unpriced.",
        done.rows,
    )
    return told % _figures(done)


def _done(done: Repriced) -> str:
    told = ngettext(
        "%(n)s row was priced, from %(before)s to %(after)s; %(left)s stay unpriced.",
        "%(n)s rows were priced, from %(before)s to %(after)s; %(left)s stay unpriced.",
        done.rows,
    )
    return told % _figures(done)


def _figures(done: Repriced) -> dict[str, str]:
    return {
        "n": words.number(done.rows),
        "before": words.dollars(done.nanos_before),
        "after": words.dollars(done.nanos_after),
        "left": words.number(done.unpriced),
    }


# ---- what it shows -----------------------------------------------------------------------------------------------


def _answer(visit: Visit, prices: Sequence[ModelPrice], missing: Sequence[Unpriced]) -> Answer | Empty:
    if not prices:
        return Empty(
            why=gettext("No prices yet: calls of models are kept and shown as unpriced."),
            command="python manage.py agent_seed_prices",
        )
    count = len(prices)
    return Answer(
        figure=Said(text=ngettext("%(n)s price", "%(n)s prices", count) % {"n": words.number(count)}),
        words=[Said(text=gettext("in force now"))],
        notes=list(_lacking(visit, missing)),
    )


def _lacking(visit: Visit, missing: Sequence[Unpriced]) -> Iterator[Said]:
    for one in missing[:3]:
        told = ngettext(
            "%(n)s call could not be priced: add a price for %(model)s",
            "%(n)s calls could not be priced: add a price for %(model)s",
            one.requests,
        )
        href = visit.asked.query(modelId=one.model_id) + "#supersede"
        yield Said(text=told % {"n": words.number(one.requests), "model": one.model_id}, href=href, mark="warn")


def _missing(visit: Visit, missing: Sequence[Unpriced]) -> Table | None:
    if not missing:
        return None
    return Table(
        caption=_("Used in these days without a price"),
        heads=[
            Head(label=_("model")),
            Head(label=_("calls"), number=True),
            Head(label=_("tokens"), number=True),
            Head(label=_("what to do")),
        ],
        rows=[
            Row(
                cells=[
                    Cell(text=one.model_id),
                    Cell(text=words.number(one.requests), href=visit.to("usage", model=one.model_id, priced="no")),
                    Cell(text=words.number(one.tokens)),
                    Cell(text=gettext("add a price"), href=visit.asked.query(modelId=one.model_id) + "#supersede"),
                ]
            )
            for one in missing
        ],
        csv=visit.csv("unpriced"),
    )


HEADS = (
    Head(label=_("input"), number=True),
    Head(label=_("output"), number=True),
    Head(label=_("cache write"), number=True),
    Head(label=_("for an hour"), number=True),
    Head(label=_("cache read"), number=True),
    Head(label=_("in force from")),
    Head(label=_("source")),
    Head(label=_("note")),
)


def _current(visit: Visit, prices: Sequence[ModelPrice]) -> Table | None:
    if not prices:
        return None
    return Table(
        caption=_("In force now, US dollars for a million tokens"),
        heads=[Head(label=_("model")), *HEADS],
        rows=[Row(cells=[_model(visit, price), *_cells(price)]) for price in prices],
        csv=visit.csv("prices"),
    )


def _history(visit: Visit, model: str) -> Table:
    return Table(
        caption=gettext("History of %(model)s") % {"model": model},
        heads=[Head(label=_("model")), *HEADS],
        rows=[Row(cells=[Cell(text=model), *_cells(price)]) for price in price_history(model)],
        empty=_("It never had a price."),
        csv=visit.csv("history"),
    )


def _model(visit: Visit, price: ModelPrice) -> Cell:
    return Cell(text=price.model_id, href=visit.asked.query(modelId=price.model_id) + "#history")


def _cells(price: ModelPrice) -> list[Cell]:
    tiers = gettext("with tiers") if price.tiers else ""
    return [
        _per_million(price.input_per_million_nanos),
        _per_million(price.output_per_million_nanos),
        _per_million(price.cache_write_per_million_nanos),
        _per_million(price.cache_write_1h_per_million_nanos),
        _per_million(price.cache_read_per_million_nanos),
        time_cell(price.effective_from),
        Cell(text=price.source),
        Cell(text=" · ".join(filter(None, (price.note, tiers)))),
    ]


def _per_million(nanos: int | None) -> Cell:
    return Cell(text=words.NOTHING if nanos is None else words.exact_dollars(nanos))
