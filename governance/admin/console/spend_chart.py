"""The chart of the spend screen: columns by day or week, stacked by model, with the time before as a line."""

from __future__ import annotations

from django.utils.translation import gettext

from governance.admin.console import words
from governance.admin.console.asked import FROM, TO
from governance.admin.console.base import Visit
from governance.admin.console.charts import Column, Layer, columns_chart
from governance.admin.console.parts import Cell, Chart, Head, Row, Said, Table
from governance.queries.trends import SpendColumn, SpendTrend, spend_trend

NANOS = 1_000_000_000


def chart(visit: Visit) -> Chart:
    """A click on a column leads to this screen for its days."""
    trend = spend_trend(visit.selection)
    columns = [
        Column(label=words.short_day(one.first), readout=_readout(one, trend), href=_rows_of(visit, one))
        for one in trend.columns
    ]
    names = [*trend.models, *([gettext("others")] if trend.others else [])]
    layers = [
        Layer(name=name, values=[one.layers[place] / NANOS for one in trend.columns])
        for place, name in enumerate(names)
    ]
    by = gettext("Cost by week") if trend.columns[0].first != trend.columns[0].last else gettext("Cost by day")
    return Chart(
        caption=by,
        svg=columns_chart(
            columns,
            layers,
            title=by,
            write=lambda value: words.dollars(round(value * NANOS)),
            before=[one.before_nanos / NANOS for one in trend.columns],
        ),
        legend=[Said(text=name, href=visit.to("spend", model=name) if name in trend.models else "") for name in names],
        line=gettext("the same number of days before"),
        data=_as_table(visit, trend, by),
    )


def _as_table(visit: Visit, trend: SpendTrend, caption: str) -> Table:
    figures = (gettext("cost"), gettext("before"), gettext("calls"), gettext("tokens"))
    return Table(
        caption=caption,
        heads=[Head(label=gettext("day")), *(Head(label=label, number=True) for label in figures)],
        rows=[
            Row(
                cells=[
                    Cell(text=words.stretch(one.first, one.last), href=_rows_of(visit, one)),
                    Cell(text=words.cost(one.cost_nanos, one.unpriced_requests)),
                    Cell(text=words.dollars(one.before_nanos)),
                    Cell(text=words.number(one.requests)),
                    Cell(text=words.number(one.total_tokens)),
                ]
            )
            for one in trend.columns
        ],
        csv=visit.csv("days"),
    )


def _rows_of(visit: Visit, one: SpendColumn) -> str:
    return visit.to("spend", **{FROM: one.first.isoformat(), TO: one.last.isoformat()})


def _readout(one: SpendColumn, trend: SpendTrend) -> str:
    """A column as a sentence: the whole, its parts, what was before."""
    whole = words.cost(one.cost_nanos, one.unpriced_requests)
    made_of = [f"{name} {words.dollars(nanos)}" for name, nanos in zip(trend.models, one.layers, strict=False) if nanos]
    before = gettext("before: %(cost)s") % {"cost": words.dollars(one.before_nanos)}
    return " · ".join([f"{words.stretch(one.first, one.last)}: {whole}", *made_of, before])
