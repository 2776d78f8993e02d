"""Usage rows: the ledger itself, row by row, with what each was priced by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from governance.admin.console import words
from governance.admin.console.asked import PLACE
from governance.admin.console.base import Load, Screen, Visit
from governance.admin.console.cells import cost_cell, id_cell, time_cell, tokens_cell
from governance.admin.console.empty import nothing_used
from governance.admin.console.lists import all_of, ask_of, counted, narrowed_to, ways, where_of
from governance.admin.console.parts import Answer, Cell, Empty, Head, Row, Said, Table
from governance.queries.usage import usage_page
from governance.queries.values import Page, UsageRow

WHERE = {"priced": _("priced"), "source": _("cost"), "threadId": _("conversation"), "runId": _("run")}


class UsageScreen(Screen):
    page = "usage"
    own = (*WHERE, *PLACE)
    tables = {"usage": lambda visit: (UsageRow, all_of(visit, usage_page, WHERE))}

    def parts(self, visit: Visit) -> Mapping[str, Load]:
        page = cache(partial(usage_page, visit.selection, where_of(visit, WHERE), ask_of(visit)))
        return {"answer": lambda visit: _answer(visit, page()), "table": lambda visit: _table(visit, page())}


def _answer(visit: Visit, page: Page[UsageRow]) -> Answer | Empty:
    narrowed = narrowed_to(visit, WHERE)
    if not page.rows and not narrowed:
        return nothing_used(visit)
    return Answer(
        figure=Said(text=counted(page)),
        words=[Said(text=gettext("calls of models in the ledger, newest first"))],
        notes=narrowed,
    )


def _table(visit: Visit, page: Page[UsageRow]) -> Table | None:
    return usage_table(visit, page.rows, caption=gettext("Usage rows"), page=page) if page.rows else None


def usage_table(visit: Visit, rows: Sequence[UsageRow], *, caption: str, page: Page[UsageRow] | None = None) -> Table:
    return Table(
        caption=caption,
        heads=[
            Head(label=_("when")),
            Head(label=_("cost"), number=True),
            Head(label=_("priced by")),
            Head(label=_("model")),
            Head(label=_("agent")),
            Head(label=_("person")),
            Head(label=_("purpose")),
            Head(label=_("in"), number=True),
            Head(label=_("out"), number=True),
            Head(label=_("cache read"), number=True),
            Head(label=_("conversation")),
            Head(label=_("run")),
        ],
        rows=[_row(visit, row) for row in rows],
        pages=None if page is None else ways(visit, page),
        csv="" if page is None else visit.csv("usage"),
    )


def _row(visit: Visit, row: UsageRow) -> Row:
    return Row(
        cells=[
            time_cell(row.created_at),
            cost_cell(row.cost_nanos),
            _source(visit, row),
            Cell(text=row.model_id, href=visit.to("usage", model=row.model_id)),
            Cell(text=row.agent_name or words.NOTHING),
            Cell(text=visit.names(row.actor_ref), href=visit.to("people", actor=row.actor_ref), title=row.actor_ref),
            Cell(text=row.purpose),
            tokens_cell(row.input_tokens),
            tokens_cell(row.output_tokens),
            tokens_cell(row.cache_read_tokens),
            id_cell(row.thread_id, visit.url("thread", row.thread_id)),
            id_cell(row.run_id, visit.url("run", row.run_id) if row.run_id else ""),
        ]
    )


def _source(visit: Visit, row: UsageRow) -> Cell:
    """Who said what it costs: the provider, one of our prices, or nobody yet."""
    prices = visit.to("prices", modelId=row.model_id)
    if row.reported_cost_nanos is not None:
        return Cell(text=gettext("provider"))
    if row.cost_nanos is None:
        return Cell(text=gettext("no price: add one"), href=prices, mark="warn")
    return Cell(text=gettext("price list"), href=prices, title=row.price_id or "")
