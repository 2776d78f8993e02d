"""What was decided, by whom, how and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.domain.text import visible
from governance.admin.console import words
from governance.admin.console.base import Load, Visit
from governance.admin.console.cells import time_cell
from governance.admin.console.lists import ask_of, counted, ways, where_of
from governance.admin.console.parts import Answer, Cell, Empty, Head, Row, Said, Table
from governance.labels import labels
from governance.queries.decisions import decisions_page
from governance.queries.records import DecisionRow
from governance.queries.values import Page

DECISIONS = {
    "approved": _("approved"),
    "rejected": _("rejected"),
    "expired": _("ran out of time"),
    "superseded": _("replaced"),
    "answered": _("answered"),
    "skipped": _("skipped"),
    "remembered": _("approved before"),
}
EXECUTIONS = {
    "queued": _("about to run"),
    "executing": _("running"),
    "succeeded": _("done"),
    "executed": _("done"),
    "failed": _("failed"),
    "unknown": _("nobody knows"),
    "pending_approval": _("about to run"),
}
NOT_RUN = frozenset({"rejected", "expired"})


def decided_parts(visit: Visit, names: Sequence[str]) -> Mapping[str, Load]:
    page = cache(partial(decisions_page, visit.selection, where_of(visit, names), ask_of(visit)))
    return {"answer": lambda _: _answer(page()), "table": lambda _: _table(visit, page())}


def _answer(page: Page[DecisionRow]) -> Answer | Empty:
    if not page.rows:
        return Empty(why=gettext("Nothing was decided in this range."))
    return Answer(figure=Said(text=counted(page)), words=[Said(text=gettext("decided in these days"))])


def _table(visit: Visit, page: Page[DecisionRow]) -> Table | None:
    if not page.rows:
        return None
    known = labels({ref for row in page.rows for ref in (row.actor_ref, row.decided_by) if ref})
    heads = (_("what"), _("asked by"), _("decision"), _("decided by"), _("how"), _("when"), _("why"), _("became of it"))
    return Table(
        caption=_("Decided"),
        heads=[Head(label=label) for label in heads],
        rows=[_row(visit, row, known) for row in page.rows],
        pages=ways(visit, page),
        csv=visit.csv("decisions"),
    )


def _row(visit: Visit, row: DecisionRow, known: Mapping[str, str]) -> Row:
    execution = "" if row.execution_status in NOT_RUN else row.execution_status or ""
    by = row.decided_by or ""
    return Row(
        cells=[
            Cell(text=visible(row.tool_name), href=visit.url("approval", row.id)),
            Cell(text=visible(known.get(row.actor_ref, row.actor_ref)), title=row.actor_ref),
            Cell(text=DECISIONS.get(row.decision, row.decision)),
            Cell(text=visible(known.get(by, by)) or words.NOTHING, title=by),
            Cell(text=visible(row.decided_via or "") or words.NOTHING),
            time_cell(row.decided_at),
            Cell(text=visible(row.reason or "")),
            Cell(
                text=EXECUTIONS.get(execution, execution) or words.NOTHING,
                mark="warn" if execution in {"failed", "unknown"} else "",
            ),
        ]
    )
