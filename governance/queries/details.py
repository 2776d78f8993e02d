"""One run with all that belongs to it, in a fixed number of statements."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from django.db.models import Q

from agent.conf import agent_settings
from agent.errors import NotFound
from agent.models import Run, Thread, ToolCall, UsageEntry
from agent.models.run import RunQuerySet
from agent.models.tenants import within
from governance.queries import runs, tools
from governance.queries.records import RunDetail
from governance.queries.selection import Selection
from governance.queries.spend import spend_of
from governance.queries.threads import head
from governance.queries.usage import COLUMNS, usage_rows, whole_cost
from governance.queries.values import Spend
from governance.reading import one_view
from governance.rollups.marks import database

FIRST = ("begun_at", "id")
SHOWN = 200  # of calls, children and rows


def run_detail(selection: Selection, run_id: str) -> RunDetail:
    """Raises `NotFound` for a run that is unknown or of another tenant. Its total has all that was done for it."""
    with one_view():
        known = Run.objects.using(database()).filter(within(selection.tenants), pk=run_id)
        found = list(runs.listed(known))
        if not found:
            raise NotFound
        family = list(_descendants(run_id))
        children = family[0]
        listed = list(runs.listed(children).order_by(*FIRST)[:SHOWN])
        run, *others = runs.run_rows([*found, *listed], text=selection.text)
        entries = UsageEntry.objects.using(database())
        whole = entries.filter(reduce(or_, (Q(run_id__in=each.values("pk")) for each in family), Q(run_id=run_id)))
        thread = Thread.objects.using(database()).filter(pk=run.thread_id)
        heads = list(thread.values("id", "title", "actor_ref", "deleted_at"))
        calls = tools.listed(ToolCall.objects.using(database()).of_run(run_id)).order_by("created_at", "id")
        return RunDetail(
            run=run,
            thread=head(heads[0], text=selection.text) if heads else None,
            tool_calls=tools.call_rows(list(calls[:SHOWN]), text=selection.text),
            children=others,
            usage=usage_rows(list(entries.filter(run_id=run_id).order_by("id").values(*COLUMNS)[:SHOWN])),
            total=Spend(**spend_of(whole_cost(whole))),
        )


def _descendants(run_id: str) -> Iterator[RunQuerySet]:
    """The runs that this one asked for, those that they asked for, and so on, as deep as a chain may be."""
    level = Run.objects.using(database()).filter(parent_run_id=run_id)
    yield level
    for _ in range(1, agent_settings().delegation_max_depth):
        level = Run.objects.using(database()).filter(parent_run_id__in=level.values("pk"))
        yield level
