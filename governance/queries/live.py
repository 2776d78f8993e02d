"""What is going on at this moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count

from agent.domain.states import OPEN_RUN
from agent.models import QueuedMessage, Run, Thread
from governance.base import database
from governance.queries.runs import purpose_of
from governance.queries.selection import Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Messages of a conversation that wait for their turn; `paused` is the code of why they do not start."""

    messages: int
    paused: str | None


def open_runs(selection: Selection) -> Mapping[str, int]:
    """Runs that are not over by status, whatever the range; every status is there."""
    rows = Run.objects.using(database()).filter(selection.q("tenant_ref", "agent", "model", "actor"))
    rows = rows.filter(purpose_of(selection, "pk"))
    found = rows.filter(status__in=sorted(OPEN_RUN)).order_by().values_list("status").annotate(number=Count("pk"))
    return {**{str(status): 0 for status in sorted(OPEN_RUN)}, **dict(found)}


def waiting_in(thread_id: str) -> Waiting:
    pause = Thread.objects.using(database()).filter(pk=thread_id).values_list("queue_pause", flat=True).first()
    messages = QueuedMessage.objects.using(database()).filter(thread_id=thread_id).count()
    return Waiting(messages=messages, paused=str(pause["reason"]) if pause else None)
