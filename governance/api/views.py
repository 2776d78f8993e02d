"""What it cost and whether it worked: every query as an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.response import Response

from agent.api.parsing import limit_of, path_id
from governance import queries
from governance.api import asking
from governance.api.base import FILTERS, LIMIT, PAGING, RANGE, ConsoleView, operation, wants_csv
from governance.permissions import RELIABILITY, SPEND, hidden_costs
from governance.queries import records, values
from governance.queries.paging import LATEST_DEFAULT, LATEST_MOST, pages
from governance.queries.spend import TOP_DEFAULT, TOP_MOST
from governance.wire import page_schema, schema, to_json

Answer = Any  # a Response, or a stream
ASKED = (*RANGE, *FILTERS)
NOT_FOUND = {404: ""}
Query = Callable[..., Any]
SeenBy = Callable[[HttpRequest, Query], Query]


class SpendView(ConsoleView):
    needs = (SPEND,)

    @operation("spend", "What a range cost", needs=needs, answer=schema(values.SpendOverview), parameters=ASKED)
    def get(self, request: Request) -> Answer:
        """Every cut of one moment; as a file, the days."""
        asked = asking.selection(request)
        if wants_csv(request):
            return self.csv(request, "spend", values.DaySpend, queries.usage_trend(asked))
        return Response(to_json(queries.spend_overview(asked)))


class TopThreadsView(ConsoleView):
    needs = (SPEND,)

    @operation(
        "top_threads",
        "The most expensive conversations",
        needs=needs,
        answer={"type": "array", "items": schema(values.ThreadSpend)},
        parameters=(*ASKED, LIMIT),
    )
    def get(self, request: Request) -> Answer:
        asked = asking.selection(request, takes=("limit",))
        limit = limit_of(request, default=TOP_DEFAULT, maximum=TOP_MOST)
        return self.rows_or_csv(
            request, "top-threads", values.ThreadSpend, partial(queries.spend_by_thread, asked, limit)
        )


class ReliabilityView(ConsoleView):
    needs = (RELIABILITY,)

    @operation("reliability", "Whether it worked", needs=needs, answer=schema(records.Reliability), parameters=ASKED)
    def get(self, request: Request) -> Answer:
        asked = asking.selection(request)
        if wants_csv(request):
            return self.csv(request, "reliability", records.DayRuns, queries.run_trend(asked))
        return Response(to_json(queries.reliability(asked)))


class ToolsView(ConsoleView):
    needs = (RELIABILITY,)

    @operation(
        "tools",
        "Statistics of tools",
        needs=needs,
        answer={"type": "array", "items": schema(records.ToolStats)},
        parameters=ASKED,
    )
    def get(self, request: Request) -> Answer:
        asked = asking.selection(request)
        return self.rows_or_csv(request, "tools", records.ToolStats, partial(queries.tool_stats, asked))


def page_view(
    name: str,
    summary: str,
    query: Callable[..., values.Page[Any]],
    row: type,
    needs: tuple[str, ...],
    seen_by: SeenBy | None = None,
) -> type[ConsoleView]:
    """A view of a page: by number, by cursor, with filters of its own, and whole as a file.

    `seen_by` makes of the query what one person may see of it.
    """

    class View(ConsoleView):
        @operation(
            name.replace("-", "_"),
            summary,
            needs=needs,
            answer=page_schema(row),
            parameters=(*ASKED, *PAGING),
        )
        def get(self, request: Request) -> Answer:
            asked = asking.selection(request, takes=(*asking.PAGING, "where"))
            where, read = asking.where(request), query if seen_by is None else seen_by(request._request, query)
            if wants_csv(request):
                read(asked, where, queries.Ask(limit=1))  # what is refused is refused before the file begins
                return self.csv(request, name, row, pages(lambda ask: read(asked, where, ask)))
            page = read(asked, where, asking.ask(request))
            return Response(to_json(page, without=hidden_costs(request._request)))

    View.needs = needs
    View.__name__ = View.__qualname__ = f"{summary.title().replace(' ', '')}View"
    return View


def latest_view(
    name: str,
    summary: str,
    query: Callable[..., Any],
    row: type,
    needs: tuple[str, ...],
    seen_by: SeenBy | None = None,
) -> type[ConsoleView]:
    """A view of the newest rows, whatever the range; `seen_by` as of a page."""

    class View(ConsoleView):
        @operation(
            name.replace("-", "_"),
            summary,
            needs=needs,
            answer={"type": "array", "items": schema(row)},
            parameters=(*FILTERS, LIMIT),
        )
        def get(self, request: Request) -> Answer:
            asked = asking.selection(request, takes=("limit",))
            limit = limit_of(request, default=LATEST_DEFAULT, maximum=LATEST_MOST)
            read = query if seen_by is None else seen_by(request._request, query)
            return self.rows_or_csv(request, name, row, partial(read, asked, limit))

    View.needs = needs
    View.__name__ = View.__qualname__ = f"{summary.title().replace(' ', '')}View"
    return View


class RunView(ConsoleView):
    needs = (RELIABILITY,)

    @operation("run", "One run", needs=needs, answer=schema(records.RunDetail), errors=NOT_FOUND, rows=False)
    def get(self, request: Request, run_id: str) -> Answer:
        """Its calls, its children, its ledger rows, and what it cost with its children."""
        found = queries.run_detail(asking.selection(request), path_id(run_id))
        return Response(to_json(found, without=hidden_costs(request._request)))


class ThreadView(ConsoleView):
    needs = (SPEND, RELIABILITY)

    @operation(
        "thread", "One conversation", needs=needs, answer=schema(records.ThreadDetail), errors=NOT_FOUND, rows=False
    )
    def get(self, request: Request, thread_id: str) -> Answer:
        """What it cost in its life, its newest runs and messages; text with `governance.view_conversations` only."""
        found = queries.thread_detail(asking.selection(request), path_id(thread_id))
        return Response(to_json(found, without=hidden_costs(request._request)))


THREADS = (SPEND, RELIABILITY)
TABLES: Mapping[str, type[ConsoleView]] = {
    "usage-page": page_view("usage-page", "Rows of the ledger", queries.usage_page, values.UsageRow, (SPEND,)),
    "runs": latest_view("runs", "The newest runs", queries.recent_runs, records.RunRow, (RELIABILITY,)),
    "runs-page": page_view("runs-page", "Runs", queries.runs_page, records.RunRow, (RELIABILITY,)),
    "tool-calls": latest_view(
        "tool-calls", "The newest calls of tools", queries.recent_tool_calls, records.ToolCallRow, (RELIABILITY,)
    ),
    "tool-calls-page": page_view(
        "tool-calls-page", "Calls of tools", queries.tool_calls_page, records.ToolCallRow, (RELIABILITY,)
    ),
    "threads": latest_view(
        "threads", "Conversations that changed last", queries.recent_threads, records.ThreadRow, THREADS
    ),
    "threads-page": page_view("threads-page", "Conversations", queries.threads_page, records.ThreadRow, THREADS),
}
