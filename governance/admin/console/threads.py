"""Conversations: their list, and one of them with what it used, its runs, its newest messages, its calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial

from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, path
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from governance.admin.console import words
from governance.admin.console.asked import PLACE
from governance.admin.console.base import Load, Screen, Visit
from governance.admin.console.cells import cost_cell, status_cell, time_cell
from governance.admin.console.lists import all_of, ask_of, counted, narrowed_to, ways, where_of
from governance.admin.console.parts import Answer, Card, Cell, Empty, Head, Row, Said, Table
from governance.admin.console.run_table import runs_table
from governance.permissions import RELIABILITY, SPEND
from governance.queries.live import Waiting, waiting_in
from governance.queries.records import MessageRow, ThreadDetail, ThreadRow
from governance.queries.threads import thread_detail, threads_page
from governance.queries.values import Page

WHERE = {"title": _("title")}


class ThreadsScreen(Screen):
    page = "threads"
    own = (*WHERE, *PLACE)
    tables = {"threads": lambda visit: (ThreadRow, all_of(visit, threads_page, WHERE))}

    def get_urls(self) -> list[URLPattern]:
        detail = self.admin_site.admin_view(self.detail_view)
        return [*super().get_urls(), path("<str:pk>/", detail, name="governance_thread")]

    def parts(self, visit: Visit) -> Mapping[str, Load]:
        page = cache(partial(threads_page, visit.selection, where_of(visit, WHERE), ask_of(visit)))
        return {"answer": lambda visit: _answer(visit, page()), "table": lambda visit: _table(visit, page())}

    def detail_view(self, request: HttpRequest, pk: str) -> HttpResponseBase:
        def page(visit: Visit) -> HttpResponseBase:
            detail = thread_detail(visit.selection, pk)
            title = words.title(detail.thread.title, pk)
            parts = thread_parts(detail)
            return self.show(visit, "governance/console/thread.html", parts, title=title, bars=False)

        return self.answered(request, page)


def _answer(visit: Visit, page: Page[ThreadRow]) -> Answer | Empty:
    narrowed = narrowed_to(visit, WHERE)
    if not page.rows and not narrowed:
        return Empty(why=gettext("No conversations in this range."))
    return Answer(
        figure=Said(text=counted(page)),
        words=[Said(text=gettext("conversations that changed in these days"))],
        notes=narrowed,
    )


def _table(visit: Visit, page: Page[ThreadRow]) -> Table | None:
    costs = visit.may(SPEND)
    if not page.rows:
        return None
    return Table(
        caption=_("Conversations"),
        heads=[
            Head(label=_("conversation")),
            Head(label=_("person")),
            Head(label=_("tenant")),
            Head(label=_("messages"), number=True),
            Head(label=_("changed")),
            Head(label=_("last run")),
            *([Head(label=_("cost in all"), number=True)] if costs else []),
        ],
        rows=[_row(visit, row, costs=costs) for row in page.rows],
        pages=ways(visit, page),
        csv=visit.csv("threads"),
    )


def _row(visit: Visit, row: ThreadRow, *, costs: bool) -> Row:
    return Row(
        cells=[
            Cell(
                text=words.title(row.title, row.thread_id),
                href=visit.url("thread", row.thread_id),
                note=gettext("deleted") if row.deleted else "",
            ),
            Cell(text=visit.names(row.actor_ref), href=visit.asked.query(actor=row.actor_ref), title=row.actor_ref),
            Cell(text=row.tenant_ref or words.NOTHING),
            Cell(text=words.number(row.message_count)),
            time_cell(row.updated_at),
            status_cell(row.last_run_status),
            *([cost_cell(row.cost_nanos, row.unpriced_requests)] if costs else []),
        ]
    )


# ---- one conversation --------------------------------------------------------------------------------------------


def thread_parts(detail: ThreadDetail) -> Mapping[str, Load]:
    return {
        "answer": lambda visit: _headline(visit, detail),
        "cards": lambda visit: list(_facts(visit, detail, waiting_in(detail.thread.thread_id))),
        "runs": lambda visit: _runs(visit, detail),
        "said": lambda visit: _messages(visit, detail),
    }


def _headline(visit: Visit, detail: ThreadDetail) -> Answer:
    thread, usage = detail.thread, detail.usage
    count = ngettext("%(n)s message", "%(n)s messages", thread.message_count)
    said = count % {"n": words.number(thread.message_count)}
    gone = (
        [Said(text=gettext("deleted by its owner; what it used stays counted"), mark="warn")] if thread.deleted else []
    )
    if not visit.may(SPEND):
        return Answer(figure=Said(text=said), notes=gone)
    return Answer(
        figure=Said(
            text=words.cost(usage.cost_nanos, usage.unpriced_requests),
            href=visit.to("usage", threadId=thread.thread_id),
            title="" if usage.cost_nanos is None else words.exact_dollars(usage.cost_nanos),
        ),
        words=[Said(text=gettext("in its whole life, for %(messages)s") % {"messages": said})],
        notes=gone,
    )


def _facts(visit: Visit, detail: ThreadDetail, waiting: Waiting) -> Iterator[Card]:
    thread = detail.thread
    yield Card(
        label=_("Person"),
        value=Said(text=visit.names(thread.actor_ref), href=visit.to("threads", actor=thread.actor_ref)),
    )
    if thread.tenant_ref:
        yield Card(label=_("Tenant"), value=Said(text=thread.tenant_ref))
    yield Card(label=_("Changed"), value=Said(text=str(time_cell(thread.updated_at).text)))
    runs = visit.to("runs", threadId=thread.thread_id) if visit.may(RELIABILITY) else ""
    yield Card(label=_("Runs"), value=Said(text=words.number(detail.run_total), href=runs))
    for status, count in sorted(detail.tool_calls.items()):
        label = gettext("Calls: %(status)s") % {"status": words.state(status)}
        calls = visit.to("tools", threadId=thread.thread_id, status=status) if visit.may(RELIABILITY) else ""
        yield Card(label=label, value=Said(text=words.number(count), href=calls))
    if waiting.messages or waiting.paused:
        note = gettext("paused: %(why)s") % {"why": words.pause(waiting.paused)} if waiting.paused else ""
        yield Card(label=_("Messages that wait"), value=Said(text=words.number(waiting.messages)), note=note)


def _runs(visit: Visit, detail: ThreadDetail) -> Table | None:
    if not detail.runs:
        return None
    return runs_table(visit, detail.runs, caption=gettext("Newest runs"))


def _messages(visit: Visit, detail: ThreadDetail) -> Table | None:
    """What was said, for who may read it; else only who spoke when."""
    if not detail.messages:
        return None
    return Table(
        caption=_("Newest messages"),
        heads=[Head(label=_("who")), Head(label=_("when")), Head(label=_("text"))],
        rows=[_message(visit, message, detail.thread.actor_ref) for message in detail.messages],
        note="" if visit.selection.text else gettext("Their text needs the permission to view conversations."),
    )


def _message(visit: Visit, message: MessageRow, person: str) -> Row:
    said = words.NOTHING if message.content is None else message.content
    href = visit.raw("agent_message", message.id) if message.truncated else ""
    return Row(
        cells=[
            Cell(text=visit.names(person) if message.role == "user" else message.agent_name or message.role),
            time_cell(message.created_at),
            Cell(text=said, note=gettext("cut: the whole message") if message.truncated else "", href=href),
        ]
    )
