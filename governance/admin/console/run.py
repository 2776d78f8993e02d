"""One run as a story: where it is, each step with its time, what it used with its children, how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial

from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.admin import story
from agent.admin.durations import between
from agent.admin.runs import CANCEL, rows_of
from agent.domain.states import OPEN_RUN
from agent.models import Run
from governance.admin.console import words
from governance.admin.console.base import Load, Visit
from governance.admin.console.parts import Answer, Card, Said, Table
from governance.admin.console.run_table import runs_table
from governance.admin.console.tools import calls_table
from governance.admin.console.usage import usage_table
from governance.permissions import SPEND
from governance.queries.details import run_detail
from governance.queries.records import RunDetail


def run_parts(visit: Visit, pk: str) -> Mapping[str, Load]:
    """The parts of the page of a run; raises `NotFound` for one that is unknown or of another tenant."""
    detail = run_detail(visit.selection, pk)
    run = Run.objects.get(pk=pk)
    costs = visit.may(SPEND)
    rows = cache(partial(rows_of, run, texts=visit.selection.text))
    return {
        "answer": lambda visit: _answer(visit, run, detail),
        "cards": lambda visit: list(_facts(visit, run, detail)),
        "moments": lambda visit: story.moments(run, rows(), costs=costs),
        "cut": lambda visit: rows().cut,
        "calls": lambda visit: _calls(visit, detail),
        "children": lambda visit: _children(visit, detail),
        "usage": lambda visit: _usage(visit, detail) if costs else None,
    }


def _answer(visit: Visit, run: Run, detail: RunDetail) -> Answer:
    cost: list[Said] = []
    if visit.may(SPEND):
        whole = words.cost(detail.total.cost_nanos, detail.total.unpriced_requests)
        told = gettext("%(cost)s with the runs it asked for") % {"cost": whole} if detail.children else whole
        cost.append(Said(text=told, href=visit.to("usage", runId=run.pk)))
    error = detail.run.error_message
    return Answer(
        figure=Said(text=words.state(run.status)),
        words=[Said(text=story.headline(run, timezone.now())), *cost],
        notes=[*([Said(text=error)] if error else []), *_stop(visit, run)],
    )


def _stop(visit: Visit, run: Run) -> Iterator[Said]:
    """The way to stop it, which asks before it does."""
    if run.status in OPEN_RUN and visit.may(CANCEL) and visit.raw("agent_run", run.pk):
        url = reverse("admin:agent_run_cancel", args=[quote(run.pk)], current_app=visit.site)
        yield Said(text=gettext("Stop this run…"), href=url)


def _facts(visit: Visit, run: Run, detail: RunDetail) -> Iterator[Card]:
    thread = detail.thread
    if thread is not None:
        title = words.title(thread.title, thread.thread_id)
        link = Said(text=title, href=visit.url("thread", thread.thread_id))
        yield Card(label=_("Conversation"), value=link, note=gettext("deleted") if thread.deleted else "")
    yield Card(label=_("Agent"), value=Said(text=run.agent_name or gettext("(default)")))
    yield Card(label=_("Model"), value=Said(text=run.model_id or words.NOTHING))
    yield Card(label=_("Person"), value=Said(text=visit.names(run.actor_ref), title=run.actor_ref))
    if run.started_at is not None:
        yield Card(label=_("Waited for a worker"), value=Said(text=between(run.created_at, run.started_at)))
    if tries := story.tries(run):
        yield Card(label=_("Tries"), value=Said(text=tries))
    if run.prompt_hash:
        same = visit.to("runs", promptHash=run.prompt_hash)
        chip = Said(text=run.prompt_hash[:8], href=same, title=run.prompt_hash)
        yield Card(label=_("Prompt"), value=chip, note=gettext("all runs of this prompt"))
    if run.parent_run_id:
        parent = Said(text=words.short_id(run.parent_run_id), href=visit.url("run", run.parent_run_id))
        yield Card(label=_("Asked by"), value=parent)


def _calls(visit: Visit, detail: RunDetail) -> Table | None:
    return calls_table(visit, detail.tool_calls, caption=gettext("Tool calls")) if detail.tool_calls else None


def _children(visit: Visit, detail: RunDetail) -> Table | None:
    return runs_table(visit, detail.children, caption=gettext("Runs it asked for")) if detail.children else None


def _usage(visit: Visit, detail: RunDetail) -> Table | None:
    return usage_table(visit, detail.usage, caption=gettext("Calls of models")) if detail.usage else None
