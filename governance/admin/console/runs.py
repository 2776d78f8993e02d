"""Runs: how many finished, how long they took, what went wrong, and their list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial

from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, path
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from governance.admin.console import words
from governance.admin.console.asked import FROM, PLACE, TO
from governance.admin.console.base import Load, Screen, Visit
from governance.admin.console.charts import Column, Layer, columns_chart
from governance.admin.console.lists import all_of, ask_of, narrowed_to, where_of
from governance.admin.console.parts import Answer, Card, Cell, Chart, Empty, Head, Row, Said, Table
from governance.admin.console.run import run_parts
from governance.admin.console.run_divisions import divided, tabs
from governance.admin.console.run_table import WHERE, runs_table
from governance.queries.compare import Change, compare
from governance.queries.prompts import PromptRuns, runs_by_prompt
from governance.queries.records import AgentRuns, ErrorCount, RunMetrics, RunRow
from governance.queries.runs import run_errors, run_metrics, runs_by_agent, runs_page
from governance.queries.selection import NONE
from governance.queries.trends import RunColumn, run_columns
from governance.queries.values import Page

ERRORS = 8


class RunsScreen(Screen):
    page = "runs"
    template = "governance/console/runs.html"
    own = (*WHERE, *PLACE, "by")
    slow = frozenset({"model", "actor", "purpose"})
    tables = {
        "runs": lambda visit: (RunRow, all_of(visit, runs_page, WHERE)),
        "agents": lambda visit: (AgentRuns, runs_by_agent(visit.selection)),
        "prompts": lambda visit: (PromptRuns, runs_by_prompt(visit.selection)),
        "errors": lambda visit: (ErrorCount, run_errors(visit.selection)),
    }

    def get_urls(self) -> list[URLPattern]:
        detail = self.admin_site.admin_view(self.detail_view)
        return [*super().get_urls(), path("<str:pk>/", detail, name="governance_run")]

    def detail_view(self, request: HttpRequest, pk: str) -> HttpResponseBase:
        def page(visit: Visit) -> HttpResponseBase:
            title = gettext("Run %(id)s") % {"id": words.short_id(pk)}
            return self.show(visit, "governance/console/run.html", run_parts(visit, pk), title=title, bars=False)

        return self.answered(request, page)

    def parts(self, visit: Visit) -> Mapping[str, Load]:
        measured = cache(partial(compare, run_metrics, visit.selection))
        errors = cache(partial(run_errors, visit.selection))
        page = partial(runs_page, visit.selection, where_of(visit, WHERE), ask_of(visit))
        return {
            "answer": lambda visit: _answer(visit, measured(), errors()),
            "cards": lambda visit: _cards(visit, measured().now),
            "chart": chart,
            "tabs": tabs,
            "divided": divided,
            "errors": lambda visit: _errors(visit, errors()),
            "table": lambda visit: table(visit, page()),
        }


# ---- the answer --------------------------------------------------------------------------------------------------


def _answer(visit: Visit, measured: Change[RunMetrics], errors: Sequence[ErrorCount]) -> Answer | Empty:
    now, before = measured.now, measured.before
    if now is None or not now.runs:
        return Empty(why=gettext("No runs in this range."))
    told = ngettext("of %(n)s run finished", "of %(n)s runs finished", now.runs) % {"n": words.number(now.runs)}
    was = gettext("(was %(rate)s)") % {"rate": words.rate(before.success_rate)} if before and before.runs else ""
    return Answer(
        figure=Said(text=words.rate(now.success_rate), href=visit.asked.query(status="completed")),
        words=[Said(text=f"{told} {was}".strip()), *_speed(measured)],
        notes=[*_common(visit, errors), *_marks(now)],
    )


def _speed(measured: Change[RunMetrics]) -> Iterator[Said]:
    now, by = measured.now, measured.differences.get("duration_p95_ms")
    if now is None or now.duration_p95_ms is None:
        return
    time = words.duration(now.duration_p95_ms, approximate=now.percentiles == "approximate")
    if by is None or measured.before is None or not measured.before.runs:
        yield Said(text=gettext("19 of 20 took at most %(time)s") % {"time": time})
        return
    change = words.duration(abs(int(by)))
    if by > 0:
        told = gettext("slower than before: 19 of 20 took at most %(time)s (+%(change)s)")
    else:
        told = gettext("not slower than before: 19 of 20 took at most %(time)s (-%(change)s)")
    yield Said(text=told % {"time": time, "change": change})


def _common(visit: Visit, errors: Sequence[ErrorCount]) -> Iterator[Said]:
    """The errors that there were most of."""
    for one in errors[:3]:
        told = {"code": one.error_code or gettext("unclassified"), "n": words.number(one.count)}
        yield Said(text=gettext("%(code)s %(n)s") % told, href=_failed(visit, one))


def _failed(visit: Visit, one: ErrorCount) -> str:
    return visit.asked.query(status="failed", errorCode=NONE if one.error_code is None else one.error_code) + "#list"


def _marks(now: RunMetrics) -> Iterator[Said]:
    if now.percentiles == "approximate":
        yield Said(text=gettext("≈ times of closed days are exact to 1 %"))


def _cards(visit: Visit, now: RunMetrics | None) -> Sequence[Card]:
    if now is None or not now.runs:
        return ()
    rough = now.percentiles == "approximate"

    def listed(label: object, count: int, status: str | None) -> Card:
        href = visit.asked.query(status=status) + "#list" if status else ""
        return Card(label=str(label), value=Said(text=words.number(count), href=href))

    return [
        Card(label=_("Runs"), value=Said(text=words.number(now.runs))),
        listed(_("Failed"), now.failed, "failed"),
        listed(_("Cancelled"), now.cancelled, "cancelled"),
        listed(_("Open"), now.open, None),
        listed(_("Retries"), now.retries, None),
        Card(label=_("Half took at most"), value=Said(text=words.duration(now.duration_p50_ms, approximate=rough))),
        Card(label=_("19 of 20 took at most"), value=Said(text=words.duration(now.duration_p95_ms, approximate=rough))),
        Card(label=_("Of it active, 19 of 20"), value=Said(text=words.duration(now.active_p95_ms, approximate=rough))),
    ]


# ---- the chart ---------------------------------------------------------------------------------------------------

STATES = (("completed", _("completed")), ("failed", _("failed")), ("cancelled", _("cancelled")), ("open", _("open")))


def chart(visit: Visit) -> Chart | None:
    columns = run_columns(visit.selection)
    if not any(one.runs for one in columns):
        return None
    caption = gettext("Runs by day") if columns[0].first == columns[0].last else gettext("Runs by week")
    return Chart(
        caption=caption,
        svg=columns_chart(
            [
                Column(label=words.short_day(one.first), readout=_readout(one), href=_days_of(visit, one))
                for one in columns
            ],
            [Layer(name=str(label), values=[getattr(one, name) for one in columns]) for name, label in STATES],
            title=caption,
            write=lambda value: words.number(round(value)),
        ),
        legend=[Said(text=label) for _name, label in STATES],
        data=Table(
            caption=caption,
            heads=[Head(label=_("day")), *(Head(label=label, number=True) for _name, label in STATES)],
            rows=[
                Row(
                    cells=[
                        Cell(text=words.stretch(one.first, one.last), href=_days_of(visit, one)),
                        *(Cell(text=words.number(getattr(one, name))) for name, _label in STATES),
                    ]
                )
                for one in columns
            ],
        ),
        kind="states",
    )


def _days_of(visit: Visit, one: RunColumn) -> str:
    return visit.asked.query(**{FROM: one.first.isoformat(), TO: one.last.isoformat()})


def _readout(one: RunColumn) -> str:
    told = [f"{label} {words.number(getattr(one, name))}" for name, label in STATES if getattr(one, name)]
    return f"{words.stretch(one.first, one.last)}: " + (" · ".join(told) or gettext("none"))


# ---- tables ------------------------------------------------------------------------------------------------------


def _errors(visit: Visit, rows: Sequence[ErrorCount]) -> Table | None:
    if not rows:
        return None
    return Table(
        caption=_("What went wrong"),
        heads=[Head(label=_("error")), Head(label=_("runs"), number=True)],
        rows=[
            Row(
                cells=[
                    Cell(text=one.error_code or gettext("unclassified"), href=_failed(visit, one)),
                    Cell(text=words.number(one.count)),
                ]
            )
            for one in rows[:ERRORS]
        ],
        csv=visit.csv("errors"),
    )


def table(visit: Visit, page: Page[RunRow]) -> Table | None:
    if not page.rows and not narrowed_to(visit, WHERE):
        return None
    return runs_table(visit, page.rows, caption=gettext("Runs"), page=page)
