"""Values of the ledger as they come out of the store. Money is integer nano-USD."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

JsonList = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEntry:
    """A ledger row. Money is integer nano-USD; `cost_nanos` None means unpriced, never free."""

    id: int
    thread_id: str
    run_id: str | None
    message_id: str | None
    actor_ref: str
    tenant_ref: str | None
    agent_name: str | None
    model_id: str
    purpose: str
    step_key: str | None
    input_tokens: int
    output_tokens: int
    cache_write_tokens: int | None
    cache_read_tokens: int | None
    cache_write_1h_tokens: int | None
    tokens_source: str
    reported_cost_nanos: int | None
    estimated_cost_nanos: int | None
    price_id: str | None
    cost_nanos: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotals:
    """Sums of ledger rows; costs of unpriced rows are not in them and are counted beside."""

    requests: int = 0
    used_tokens: int = 0
    cost_nanos: int = 0
    reported_cost_nanos: int = 0
    unpriced_requests: int = 0
    unpriced_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """A dated price in nano-USD per million tokens. A None cache price means that the next wider price applies."""

    id: str
    model_id: str
    input_per_million_nanos: int
    output_per_million_nanos: int
    cache_write_per_million_nanos: int | None = None
    cache_read_per_million_nanos: int | None = None
    cache_write_1h_per_million_nanos: int | None = None
    tiers: JsonList | None = None
    effective_from: datetime
    source: str
    created_by_ref: str | None = None
    note: str | None = None
    created_at: datetime
