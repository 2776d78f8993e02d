"""Conversations: their list, and one of them in six statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery

from agent.errors import NotFound
from agent.models import Message, Run, Thread, ToolCall, UsageEntry
from agent.models.tenants import within
from governance.base import genuine_calls
from governance.queries import runs
from governance.queries.paging import LATEST_DEFAULT, LATEST_MOST, Ask, Field, Order, Where, narrowed, page_of
from governance.queries.records import MessageRow, RunRow, ThreadDetail, ThreadHead, ThreadRow
from governance.queries.selection import Selection
from governance.queries.spend import spend_of
from governance.queries.usage import cost_fields, costs_by, whole_cost
from governance.queries.values import Page, Spend
from governance.reading import one_view
from governance.rollups.marks import database

NEWEST = Order(columns=("updated_at", "id"))
FIELDS: Mapping[str, Field] = {
    "actorRef": "actor_ref",
    "tenantRef": "tenant_ref",
    "title": lambda text: Q(title__icontains=text),
}
SHOWN = ("id", "title", "actor_ref", "tenant_ref", "updated_at", "deleted_at")
CONTENT_SHOWN = 2000
MESSAGES, RUNS = 50, 25


def recent_threads(selection: Selection, limit: int = LATEST_DEFAULT) -> Sequence[ThreadRow]:
    """Those that changed last, whatever the range."""
    with one_view():
        rows = _listed(_base(selection)).order_by(*NEWEST.clauses)[: min(limit, LATEST_MOST)]
        return _rows(list(rows), text=selection.text)


def threads_page(selection: Selection, where: Where | None = None, ask: Ask | None = None) -> Page[ThreadRow]:
    """Conversations that changed in the range."""
    asked, conditions = narrowed(selection, where or {}, FIELDS)
    span = asked.range.span
    rows = _base(asked).filter(conditions, updated_at__gte=span.start, updated_at__lt=span.end)
    with one_view():
        return page_of(_listed(rows), NEWEST, ask or Ask(), lambda some: _rows(some, text=asked.text))


def thread_detail(
    selection: Selection, thread_id: str, *, messages: int = MESSAGES, runs_shown: int = RUNS
) -> ThreadDetail:
    """One conversation over its whole life; raises `NotFound` for one that is gone or of another tenant."""
    with one_view():
        rows = _listed(Thread.objects.using(database()).filter(within(selection.tenants), pk=thread_id))
        counts = {"message_count": _count(Message), "run_total": _count(Run), "last_run_status": _last_status()}
        row = next(iter(rows.annotate(**counts)), None)
        if row is None:
            raise NotFound
        cost = whole_cost(UsageEntry.objects.using(database()).filter(thread_id=thread_id))
        its_runs = Run.objects.using(database()).filter(thread_id=thread_id)
        calls = genuine_calls(ToolCall.objects.using(database())).filter(thread_id=thread_id).order_by()
        return ThreadDetail(
            thread=_row(
                row,
                {thread_id: row["message_count"] or 0},
                {thread_id: row["last_run_status"]},
                cost,
                text=selection.text,
            ),
            usage=Spend(**spend_of(cost)),
            run_total=row["run_total"] or 0,
            runs=_runs(its_runs, runs_shown, text=selection.text),
            messages=_messages(thread_id, messages, text=selection.text),
            tool_calls=dict(calls.values_list("status").annotate(number=Count("pk"))),
        )


def head(row: Mapping[str, Any], *, text: bool) -> ThreadHead:
    return ThreadHead(
        thread_id=row["id"],
        title=row["title"] if text else None,
        actor_ref=row["actor_ref"],
        deleted=row["deleted_at"] is not None,
    )


def _base(selection: Selection) -> QuerySet[Thread]:
    """Filters of calls keep conversations that have one such run, or one such row of the ledger."""
    rows = Thread.objects.using(database()).filter(selection.q("tenant_ref", "actor"), transient=False)
    if selection.has("agent", "model"):
        rows = rows.filter(Exists(Run.objects.filter(selection.q("agent", "model"), thread_id=OuterRef("pk"))))
    if selection.has("purpose"):
        rows = rows.filter(Exists(UsageEntry.objects.filter(selection.q("purpose"), thread_id=OuterRef("pk"))))
    return rows


def _listed(rows: QuerySet[Thread]) -> QuerySet[Thread, dict[str, Any]]:
    found: QuerySet[Thread, dict[str, Any]] = rows.values(*SHOWN)
    return found


def _rows(rows: Sequence[Mapping[str, Any]], *, text: bool) -> list[ThreadRow]:
    ids = [row["id"] for row in rows]
    costs = costs_by("thread_id", ids)
    if not ids:
        return []
    messages = Message.objects.using(database()).filter(thread_id__in=ids).order_by().values_list("thread_id")
    counts = dict(messages.annotate(number=Count("pk")))
    known = Thread.objects.using(database()).filter(pk__in=ids).annotate(last_run_status=_last_status())
    last = dict(known.values_list("pk", "last_run_status"))
    return [_row(row, counts, last, costs.get(row["id"]), text=text) for row in rows]


def _row(
    row: Mapping[str, Any],
    counts: Mapping[str, int],
    last: Mapping[str, str | None],
    cost: dict[str, int] | None,
    *,
    text: bool,
) -> ThreadRow:
    shown: dict[str, Any] = {name: row[name] for name in ("actor_ref", "tenant_ref", "updated_at")} | cost_fields(cost)
    return ThreadRow(
        **shown,
        thread_id=row["id"],
        title=row["title"] if text else None,
        message_count=counts.get(row["id"], 0),
        last_run_status=last.get(row["id"]),
        deleted=row["deleted_at"] is not None,
    )


def _count(model: type[Message] | type[Run]) -> Subquery:
    rows = model._default_manager.filter(thread_id=OuterRef("pk")).order_by().values("thread_id")
    return Subquery(rows.annotate(number=Count("pk")).values("number"))


def _last_status() -> Subquery:
    newest = Run.objects.filter(thread_id=OuterRef("pk"), depth=0).order_by("-created_at", "-id")
    return Subquery(newest.values("status")[:1])


def _runs(rows: QuerySet[Run], limit: int, *, text: bool) -> list[RunRow]:
    newest = runs.listed(rows).order_by(*runs.NEWEST.clauses)[: min(limit, LATEST_MOST)]
    return runs.run_rows(list(newest), text=text)


def _messages(thread_id: str, limit: int, *, text: bool) -> list[MessageRow]:
    """The newest, oldest of them first."""
    columns = ("id", "seq", "role", "content", "agent_name", "run_id", "created_at")
    newest = Message.objects.using(database()).filter(thread_id=thread_id).order_by("-seq").values(*columns)
    return [_message(row, text=text) for row in reversed(newest[: min(limit, LATEST_MOST)])]


def _message(row: dict[str, Any], *, text: bool) -> MessageRow:
    content = row.pop("content")
    cut = text and len(content) > CONTENT_SHOWN
    return MessageRow(**row, content=content[:CONTENT_SHOWN] if text else None, truncated=cut)
