"""Runs by the prompt that they were begun with, so that a change of it can be seen as the cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Q
from django.db.models.functions import Coalesce

from agent.domain.states import RunStatus
from agent.models import Run
from governance.base import begun_in, database
from governance.queries.runs import purpose_of
from governance.queries.selection import Selection

MOST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRuns:
    prompt_hash: str | None
    agent_name: str | None
    first_at: datetime  # within the range
    runs: int
    completed: int
    failed: int
    cancelled: int
    success_rate: float | None


def runs_by_prompt(selection: Selection) -> Sequence[PromptRuns]:
    """The prompts of a range, the newest first, counted from single runs: no daily summary tells them apart."""
    rows = Run.objects.using(database()).filter(selection.q("tenant_ref", "agent", "model", "actor"))
    runs = begun_in(rows.filter(purpose_of(selection, "pk")), [selection.range.span])
    counted = (
        runs.order_by()
        .values("prompt_hash", "agent_name")
        .annotate(
            first_at=Min(Coalesce("started_at", "created_at")),
            runs=Count("pk"),
            completed=_ended(RunStatus.COMPLETED),
            failed=_ended(RunStatus.FAILED),
            cancelled=_ended(RunStatus.CANCELLED),
        )
    )
    found = counted.order_by("-first_at", "agent_name", "prompt_hash")[:MOST]
    return [PromptRuns(**row, success_rate=_rate(row["completed"], row["failed"])) for row in found]


def _ended(status: RunStatus) -> Count:
    return Count("pk", filter=Q(status=status))


def _rate(completed: int, failed: int) -> float | None:
    return completed / (completed + failed) if completed + failed else None
