"""What queries answer: frozen rows whose fields are the contract (spec 08 §7), money in nanos, None for unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[R]):
    """One page of a table; `total` stops counting where pages by number end."""

    rows: Sequence[R]
    total: int
    page: int
    page_size: int
    next_cursor: str | None = None
    total_capped: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendSummary:
    """`cost_nanos` None: there are calls and not one of them has a known cost. Reported and estimated make the cost."""

    requests: int
    input_tokens: int
    output_tokens: int
    cache_write_tokens: int
    cache_read_tokens: int
    total_tokens: int
    cost_nanos: int | None
    reported_cost_nanos: int
    estimated_cost_nanos: int
    unpriced_requests: int
    unpriced_tokens: int
    actors: int
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    requests: int
    input_tokens: int
    output_tokens: int
    cost_nanos: int | None
    unpriced_requests: int
    unpriced_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpend(Spend):
    model_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpend(Spend):
    agent_name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PurposeSpend(Spend):
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSpend(Spend):
    tenant_ref: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorSpend:
    actor_ref: str
    label: str | None
    requests: int
    total_tokens: int
    cost_nanos: int | None
    thread_count: int
    unpriced_requests: int
    unpriced_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSpend:
    thread_id: str
    title: str | None
    actor_ref: str
    requests: int
    total_tokens: int
    cost_nanos: int | None
    unpriced_requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySpend:
    day: date
    total_tokens: int
    cost_nanos: int | None
    unpriced_requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendOverview:
    """Every cut of a range's spend, of one and the same moment."""

    summary: SpendSummary
    by_model: Sequence[ModelSpend]
    by_actor: Sequence[ActorSpend]
    by_agent: Sequence[AgentSpend]
    by_purpose: Sequence[PurposeSpend]
    by_tenant: Sequence[TenantSpend]
    trend: Sequence[DaySpend]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    id: int
    created_at: datetime
    actor_ref: str
    tenant_ref: str | None
    agent_name: str | None
    model_id: str
    purpose: str
    tokens_source: str
    input_tokens: int
    output_tokens: int
    cache_write_tokens: int | None
    cache_read_tokens: int | None
    reported_cost_nanos: int | None
    estimated_cost_nanos: int | None
    cost_nanos: int | None
    price_id: str | None
    thread_id: str
    run_id: str | None
    message_id: str | None
