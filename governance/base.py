"""The rows that figures are made of, by the days that they are counted on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from django.db import models, router
from django.db.models import Q, QuerySet

from agent.models import Run, ToolCall, UsageEntry
from governance.days import Span

M = TypeVar("M", bound=models.Model)


def database() -> str:
    """Where the tables that are read and the rollups are: together, or a build could not be one transaction."""
    return router.db_for_write(UsageEntry)


def created_in(rows: QuerySet[M], spans: Iterable[Span]) -> QuerySet[M]:
    """Rows that were created in one of the stretches."""
    return rows.filter(_any(Q(created_at__gte=span.start, created_at__lt=span.end) for span in spans))


def begun_in(runs: QuerySet[Run], spans: Iterable[Span]) -> QuerySet[Run]:
    """Runs that were started in one of the stretches; one that is not started is counted when it was admitted."""
    return runs.filter(
        _any(
            Q(started_at__gte=span.start, started_at__lt=span.end)
            | Q(started_at=None, created_at__gte=span.start, created_at__lt=span.end)
            for span in spans
        )
    )


def genuine_calls(calls: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    """Calls that a model made: a fork's copies of them were not made again."""
    return calls.filter(origin_call_id=None)


def _any(conditions: Iterable[Q]) -> Q:
    found = Q(pk__in=[])
    for condition in conditions:
        found |= condition
    return found
