"""Ledger rows, runs and calls as a test wants them, and one plain sum to hold every figure against."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.domain.ids import new_id
from agent.models import ModelPrice, Run, Thread, UsageEntry

NOON = datetime(2026, 6, 15, 12, 0, tzinfo=UTC)


def entry(at: datetime = NOON, **fields: Any) -> UsageEntry:
    """A stored row: 100 tokens in, 10 out, 1,000 nanos by an estimate."""
    values: dict[str, Any] = {
        "thread_id": "thread-1",
        "actor_ref": "ana",
        "model_id": "m",
        "purpose": "chat",
        "input_tokens": 100,
        "output_tokens": 10,
        "tokens_source": "reported",
        "estimated_cost_nanos": 1000,
        "created_at": at,
    }
    values |= fields
    reported, estimated = values.get("reported_cost_nanos"), values["estimated_cost_nanos"]
    values.setdefault("cost_nanos", estimated if reported is None else reported)
    return UsageEntry.objects.create(**values)


def run(at: datetime = NOON, **fields: Any) -> Run:
    """A stored run that completed a second after it began."""
    run_id = fields.pop("id", None) or new_id()
    values: dict[str, Any] = {
        "thread_id": "thread-1",
        "actor_ref": "ana",
        "actor": {"ref": "ana"},
        "status": "completed",
        "trigger": "send",
        "input": {},
        "stream_run_id": run_id,
        "created_at": at,
        "started_at": at,
        "settled_at": at + timedelta(seconds=1),
        "duration_ms": 1000,
        "active_ms": 1000,
    }
    return Run.objects.create(id=run_id, **(values | fields))


def thread(at: datetime = NOON, **fields: Any) -> Thread:
    return Thread.objects.create(**({"actor_ref": "ana", "created_at": at, "updated_at": at} | fields))


def price(model_id: str = "m", *, since: datetime = NOON - timedelta(days=900), **fields: Any) -> ModelPrice:
    """A dollar a million tokens in, two out."""
    values: dict[str, Any] = {
        "input_per_million_nanos": 10**9,
        "output_per_million_nanos": 2 * 10**9,
        "source": "test",
        "created_at": since,
    }
    return ModelPrice.objects.create(model_id=model_id, effective_from=since, **(values | fields))


def cost(entries: Iterable[UsageEntry]) -> int:
    return sum(each.cost_nanos or 0 for each in entries)
