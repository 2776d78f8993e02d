"""The ledger itself, a page at a time, and what single runs and threads cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import Q, QuerySet

from agent.errors import Invalid
from agent.models import Run, UsageEntry
from governance.base import created_in
from governance.measures import MEASURES, THREAD
from governance.queries.paging import Ask, Field, Order, Where, narrowed, page_of
from governance.queries.selection import Selection
from governance.queries.spend import known_cost
from governance.queries.sums import Sums
from governance.queries.values import Page, UsageRow
from governance.reading import one_view
from governance.rollups.marks import database

NEWEST = Order(columns=("created_at", "id"))
COLUMNS = tuple(UsageRow.__dataclass_fields__)
NOTHING: Sums = dict.fromkeys(THREAD, 0)


def _priced(value: str) -> Q:
    return _one_of("priced", value, {"yes": Q(cost_nanos__isnull=False), "no": Q(cost_nanos=None)})


def _source(value: str) -> Q:
    estimated = Q(reported_cost_nanos=None, estimated_cost_nanos__isnull=False)
    return _one_of("source", value, {"reported": Q(reported_cost_nanos__isnull=False), "estimated": estimated})


def _one_of(name: str, value: str, words: Mapping[str, Q]) -> Q:
    if value not in words:
        raise Invalid.field(f"where[{name}]", " or ".join(words))
    return words[value]


FIELDS: Mapping[str, Field] = {
    "modelId": "model_id",
    "purpose": "purpose",
    "actorRef": "actor_ref",
    "agentName": "agent_name",
    "tenantRef": "tenant_ref",
    "threadId": "thread_id",
    "runId": "run_id",
    "priced": _priced,
    "source": _source,
}


def usage_page(selection: Selection, where: Where | None = None, ask: Ask | None = None) -> Page[UsageRow]:
    """Ledger rows, newest first."""
    asked, conditions = narrowed(selection, where or {}, FIELDS)
    rows = created_in(UsageEntry.objects.using(database()), [asked.range.span]).filter(asked.q(), conditions)
    with one_view():
        return page_of(rows.values(*COLUMNS), NEWEST, ask or Ask(), usage_rows)


def usage_rows(rows: Sequence[Mapping[str, Any]]) -> list[UsageRow]:
    return [UsageRow(**row) for row in rows]


def costs_by(column: str, keys: Collection[str]) -> dict[str, Sums]:
    """What each of these runs or threads has cost in its life, in one statement."""
    if not keys:
        return {}
    entries = UsageEntry.objects.using(database()).filter(**{f"{column}__in": list(keys)})
    grouped = entries.order_by().values(column).annotate(**{f"sum_{name}": MEASURES[name] for name in THREAD})
    return {row[column]: {name: int(row[f"sum_{name}"] or 0) for name in THREAD} for row in grouped}


def costs_with_children(run_ids: Collection[str]) -> dict[str, Sums]:
    """What each of these runs has cost together with the runs that it started, in two statements."""
    children = Run.objects.using(database()).filter(parent_run_id__in=list(run_ids)) if run_ids else Run.objects.none()
    parents = {child: str(parent) for child, parent in children.values_list("pk", "parent_run_id")}
    found: dict[str, Sums] = {}
    for run_id, sums in costs_by("run_id", {*run_ids, *parents}).items():
        whole = found.setdefault(parents.get(run_id, run_id), dict(NOTHING))
        for name, value in sums.items():
            whole[name] += value
    return found


def whole_cost(entries: QuerySet[UsageEntry]) -> Sums:
    found = entries.aggregate(**{f"sum_{name}": MEASURES[name] for name in THREAD})
    return {name: int(found[f"sum_{name}"] or 0) for name in THREAD}


def cost_fields(sums: Sums | None) -> dict[str, int | None]:
    """The two fields of a row that say what it cost."""
    told = sums or NOTHING
    return {"cost_nanos": known_cost(told), "unpriced_requests": told["unpriced_requests"]}
