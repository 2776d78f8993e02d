"""Models: what each cost, how much of it came from the cache, and whether it has a price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from governance.admin.console import words
from governance.admin.console.base import Load, Screen, Visit
from governance.admin.console.cells import cost_cell
from governance.admin.console.empty import nothing_used
from governance.admin.console.parts import Answer, Cell, Empty, Head, Row, Said, Table
from governance.queries.cuts import ModelShare, model_shares
from governance.queries.spend import spend_by_model
from governance.queries.values import ModelSpend


class ModelsScreen(Screen):
    page = "models"
    tables = {"models": lambda visit: (ModelSpend, spend_by_model(visit.selection))}

    def parts(self, visit: Visit) -> Mapping[str, Load]:
        shares = cache(partial(model_shares, visit.selection))
        return {"answer": lambda visit: _answer(visit, shares()), "table": lambda visit: _table(visit, shares())}


def _answer(visit: Visit, shares: list[ModelShare]) -> Answer | Empty:
    if not shares:
        return nothing_used(visit)
    count, dearest = len(shares), shares[0].share
    told = {"model": dearest.key, "cost": words.cost(dearest.cost_nanos, dearest.unpriced_requests)}
    return Answer(
        figure=Said(text=ngettext("%(n)s model", "%(n)s models", count) % {"n": words.number(count)}),
        words=[Said(text=gettext("most of the cost: %(model)s, %(cost)s") % told)],
        notes=list(_missing(visit, sum(one.share.unpriced_requests > 0 for one in shares))),
    )


def _missing(visit: Visit, count: int) -> Iterator[Said]:
    if count:
        told = ngettext("%(n)s of them has calls without a price", "%(n)s of them have calls without a price", count)
        yield Said(text=told % {"n": words.number(count)}, href=visit.to("usage", priced="no"), mark="warn")


def _table(visit: Visit, shares: list[ModelShare]) -> Table:
    return Table(
        caption=_("Models"),
        heads=[
            Head(label=_("model")),
            Head(label=_("cost"), number=True),
            Head(label=_("share"), hidden=True),
            Head(label=_("change"), number=True),
            Head(label=_("calls"), number=True),
            Head(label=_("tokens"), number=True),
            Head(label=_("cache read"), number=True),
            Head(label=_("cache write"), number=True),
            Head(label=_("price now, per million")),
        ],
        rows=[_row(visit, one) for one in shares],
        csv=visit.csv("models"),
    )


def _row(visit: Visit, one: ModelShare) -> Row:
    share, model = one.share, str(one.share.key)
    return Row(
        cells=[
            Cell(text=model, href=visit.to("spend", model=model)),
            cost_cell(share.cost_nanos, share.unpriced_requests, visit.to("usage", model=model)),
            Cell(text="", share=share.of_largest),
            Cell(text=words.changed(share.cost)),
            Cell(text=words.number(share.requests), href=visit.to("usage", model=model)),
            Cell(text=words.short_number(share.total_tokens), title=words.number(share.total_tokens)),
            Cell(text=words.NOTHING if one.cache_read is None else words.percent(one.cache_read)),
            Cell(text=words.NOTHING if one.cache_write is None else words.percent(one.cache_write)),
            _price(visit, one),
        ]
    )


def _price(visit: Visit, one: ModelShare) -> Cell:
    href = visit.to("prices", modelId=str(one.share.key))
    if one.price is None:
        return Cell(text=gettext("no price: add one"), href=href, mark="warn")
    told = {
        "input": words.dollars(one.price.input_per_million_nanos),
        "output": words.dollars(one.price.output_per_million_nanos),
    }
    return Cell(text=gettext("%(input)s in, %(output)s out") % told, href=href)
