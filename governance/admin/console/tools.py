"""Tools: how often each was called, how often it failed, how long it took, and the calls themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from governance.admin.console import words
from governance.admin.console.asked import PLACE
from governance.admin.console.base import Load, Screen, Visit
from governance.admin.console.cells import id_cell, status_cell, time_cell
from governance.admin.console.lists import all_of, ask_of, narrowed_to, ways, where_of
from governance.admin.console.parts import Answer, Cell, Empty, Head, Row, Said, Table
from governance.queries.records import ToolCallRow, ToolStats
from governance.queries.tools import tool_calls_page, tool_stats
from governance.queries.values import Page

WHERE = {
    "toolName": _("tool"),
    "toolType": _("type"),
    "status": _("status"),
    "threadId": _("conversation"),
    "runId": _("run"),
}


class ToolsScreen(Screen):
    page = "tools"
    template = "governance/console/tools.html"
    own = (*WHERE, *PLACE)
    slow = frozenset({"model", "actor", "purpose"})
    tables = {
        "calls": lambda visit: (ToolCallRow, all_of(visit, tool_calls_page, WHERE)),
        "tools": lambda visit: (ToolStats, tool_stats(visit.selection)),
    }

    def parts(self, visit: Visit) -> Mapping[str, Load]:
        tools = cache(partial(tool_stats, visit.selection))
        page = partial(tool_calls_page, visit.selection, where_of(visit, WHERE), ask_of(visit))
        return {
            "answer": lambda visit: _answer(visit, tools()),
            "tools": lambda visit: _tools(visit, tools()),
            "table": lambda visit: _calls(visit, page()),
        }


def _answer(visit: Visit, tools: Sequence[ToolStats]) -> Answer | Empty:
    if not tools:
        return Empty(why=gettext("No tool was called in this range."))
    calls, failed = sum(tool.calls for tool in tools), [tool for tool in tools if tool.failed]
    worst = max(failed, key=lambda tool: tool.failed, default=None)
    told = ngettext("call of %(tools)s tool", "calls of %(tools)s tools", len(tools))
    notes = []
    if worst is not None:
        said = {"tool": worst.tool_name, "n": words.number(worst.failed), "rate": words.rate(worst.failure_rate)}
        href = visit.asked.query(toolName=worst.tool_name, status="failed") + "#list"
        notes.append(Said(text=gettext("most failures: %(tool)s %(n)s (%(rate)s)") % said, href=href))
    if any(tool.percentiles == "approximate" for tool in tools):
        notes.append(Said(text=gettext("≈ times of closed days are exact to 1 %")))
    return Answer(
        figure=Said(text=words.number(calls)),
        words=[Said(text=told % {"tools": words.number(len(tools))})],
        notes=notes,
    )


def _tools(visit: Visit, tools: Sequence[ToolStats]) -> Table | None:
    if not tools:
        return None
    figures = (_("calls"), _("carried out"), _("failed"), _("failure rate"), _("rejected"), _("expired"), _("pending"))
    times = (_("half took at most"), _("19 of 20"))
    return Table(
        caption=_("By tool"),
        heads=[
            Head(label=_("tool")),
            Head(label=_("type")),
            *(Head(label=label, number=True) for label in (*figures, *times)),
        ],
        rows=[_tool(visit, tool) for tool in tools],
        csv=visit.csv("tools"),
    )


def _tool(visit: Visit, tool: ToolStats) -> Row:
    def listed(count: int, status: str | None = None) -> Cell:
        href = visit.asked.query(toolName=tool.tool_name, status=status) + "#list" if count and status else ""
        return Cell(text=words.number(count), href=href)

    rough = tool.percentiles == "approximate"
    return Row(
        cells=[
            Cell(text=tool.tool_name, href=visit.asked.query(toolName=tool.tool_name) + "#list"),
            Cell(text=tool.tool_type),
            listed(tool.calls),
            listed(tool.executed),
            listed(tool.failed, "failed"),
            Cell(text=words.rate(tool.failure_rate)),
            listed(tool.rejected, "rejected"),
            listed(tool.expired, "expired"),
            listed(tool.pending, "pending_approval"),
            Cell(text=words.duration(tool.p50_execution_ms, approximate=rough)),
            Cell(text=words.duration(tool.p95_execution_ms, approximate=rough)),
        ]
    )


def _calls(visit: Visit, page: Page[ToolCallRow]) -> Table | None:
    if not page.rows and not narrowed_to(visit, WHERE):
        return None
    return calls_table(visit, page.rows, caption=gettext("Calls"), page=page)


def calls_table(
    visit: Visit, rows: Sequence[ToolCallRow], *, caption: str, page: Page[ToolCallRow] | None = None
) -> Table:
    return Table(
        caption=caption,
        heads=[
            Head(label=_("tool")),
            Head(label=_("status")),
            Head(label=_("asked for")),
            Head(label=_("took"), number=True),
            Head(label=_("agent")),
            Head(label=_("person")),
            Head(label=_("decision")),
            Head(label=_("conversation")),
            Head(label=_("run")),
        ],
        rows=[_call(visit, row) for row in rows],
        empty=_("No such calls in these days."),
        pages=None if page is None or not page.rows else ways(visit, page),
        csv="" if page is None else visit.csv("calls"),
        chosen=narrowed_to(visit, WHERE) if page is not None else (),
    )


def _call(visit: Visit, row: ToolCallRow) -> Row:
    decided = " · ".join(filter(None, (row.decision, row.decided_by, row.decided_via)))
    return Row(
        cells=[
            Cell(text=row.tool_name, href=visit.raw("agent_toolcall", row.tool_call_id)),
            status_cell(row.status, row.error),
            time_cell(row.created_at),
            Cell(text=words.duration(row.execution_ms)),
            Cell(text=row.agent_name or gettext("(default)")),
            Cell(text=visit.names(row.actor_ref), title=row.actor_ref),
            Cell(text=decided or words.NOTHING),
            id_cell(row.thread_id, visit.url("thread", row.thread_id)),
            id_cell(row.run_id, visit.url("run", row.run_id) if row.run_id else ""),
        ]
    )
