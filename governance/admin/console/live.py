"""Live: what runs, waits and is queued now, and what happens while one looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path
from django.utils.translation import gettext

from agent.admin.scope import scope_of
from agent.api.sse import stream_response
from governance.admin.console import words
from governance.admin.console.base import Load, Screen, Visit
from governance.admin.console.parts import Answer, Card, Said, Table
from governance.admin.console.run_table import runs_table
from governance.queries.live import open_runs
from governance.queries.records import RunRow
from governance.queries.runs import recent_runs
from governance.tail import event_parts

SHOWN = 50


class LiveScreen(Screen):
    page = "live"
    template = "governance/console/live.html"
    dated = False
    tables = {"runs": lambda visit: (RunRow, recent_runs(visit.selection, SHOWN))}

    def get_urls(self) -> list[URLPattern]:
        stream = self.admin_site.admin_view(self.stream_view)
        return [path("events/", stream, name="governance_live_events"), *super().get_urls()]

    def parts(self, visit: Visit) -> Mapping[str, Load]:
        counts = cache(partial(open_runs, visit.selection))
        return {
            "answer": lambda visit: _answer(counts()),
            "cards": lambda visit: _cards(visit, counts()),
            "table": _runs,
            "stream": lambda visit: visit.url("live_events"),
        }

    def stream_view(self, request: HttpRequest) -> HttpResponseBase:
        """The events of the tenants one may see; else the page looks again."""
        return self.answered(request, partial(_stream, request))


def _stream(request: HttpRequest, visit: Visit) -> HttpResponseBase:
    if not isinstance(request, ASGIRequest):
        return HttpResponse(status=204)  # which a browser takes for: do not come again
    return stream_response(request, event_parts(scope_of(request)))


def _answer(counts: Mapping[str, int]) -> Answer:
    running, waiting, queued = (counts.get(name, 0) for name in ("running", "waiting", "queued"))
    if not running + waiting + queued:
        return Answer(figure=Said(text="0"), words=[Said(text=gettext("Nothing is running."))])
    told = gettext("running now, %(waiting)s wait for a person, %(queued)s for a worker")
    said = {"waiting": words.number(waiting), "queued": words.number(queued)}
    return Answer(figure=Said(text=words.number(running)), words=[Said(text=told % said)])


def _cards(visit: Visit, counts: Mapping[str, int]) -> Sequence[Card]:
    return [
        Card(
            label=words.state(status),
            value=Said(
                text=words.number(counts[status]), href=visit.to("runs", status=status) if counts[status] else ""
            ),
        )
        for status in ("running", "waiting", "queued")
    ]


def _runs(visit: Visit) -> Table:
    table = runs_table(visit, recent_runs(visit.selection, SHOWN), caption=gettext("The last runs"))
    return replace(table, csv=visit.csv("runs"))
