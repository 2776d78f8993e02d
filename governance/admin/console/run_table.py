"""Runs as a table: on their own screen, on the page of a conversation, beside the run that asked for them."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from governance.admin.console import words
from governance.admin.console.base import Visit
from governance.admin.console.cells import cost_cell, id_cell, status_cell, time_cell
from governance.admin.console.lists import narrowed_to, ways
from governance.admin.console.parts import Cell, Head, Row, Table
from governance.permissions import SPEND
from governance.queries.records import RunRow
from governance.queries.values import Page

WHERE = {
    "status": _("status"),
    "errorCode": _("error"),
    "threadId": _("conversation"),
    "parentRunId": _("asked by run"),
    "promptHash": _("prompt"),
}


def runs_table(visit: Visit, rows: Sequence[RunRow], *, caption: str, page: Page[RunRow] | None = None) -> Table:
    """Runs as rows; what they cost for who may see it."""
    costs = visit.may(SPEND)
    return Table(
        caption=caption,
        heads=[
            Head(label=_("run")),
            Head(label=_("status")),
            Head(label=_("began")),
            Head(label=_("took"), number=True),
            Head(label=_("agent")),
            Head(label=_("model")),
            Head(label=_("person")),
            Head(label=_("conversation")),
            *([Head(label=_("cost"), number=True)] if costs else []),
        ],
        rows=[_run(visit, row, costs=costs) for row in rows],
        empty=_("No runs yet.") if page is None else _("No such runs in these days."),
        pages=None if page is None or not page.rows else ways(visit, page),
        csv="" if page is None else visit.csv("runs"),
        chosen=narrowed_to(visit, WHERE) if page is not None else (),
    )


def _run(visit: Visit, row: RunRow, *, costs: bool) -> Row:
    return Row(
        cells=[
            id_cell(row.run_id, visit.url("run", row.run_id)),
            status_cell(row.status, row.error_code),
            time_cell(row.started_at),
            Cell(text=words.duration(row.duration_ms)),
            Cell(text=row.agent_name or gettext("(default)")),
            Cell(text=row.model_id or words.NOTHING),
            Cell(text=visit.names(row.actor_ref), title=row.actor_ref),
            id_cell(row.thread_id, visit.url("thread", row.thread_id)),
            *([cost_cell(row.cost_nanos, row.unpriced_requests)] if costs else []),
        ]
    )
