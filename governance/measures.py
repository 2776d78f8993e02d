"""What is summed of ledger rows, and the same of rollup rows: one list, so that both parts of a figure agree."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Count, Expression, F, Q, Sum

_TOKENS = F("input_tokens") + F("output_tokens")
_REPORTED = Q(reported_cost_nanos__isnull=False)
_ESTIMATED = Q(reported_cost_nanos=None, cost_nanos__isnull=False)
_UNPRICED = Q(cost_nanos=None)

# The cost of a row is what was reported or else what was estimated: both parts add up to the whole.
MEASURES: Mapping[str, Expression] = {
    "requests": Count("pk"),
    "input_tokens": Sum("input_tokens"),
    "output_tokens": Sum("output_tokens"),
    "cache_write_tokens": Sum("cache_write_tokens"),
    "cache_read_tokens": Sum("cache_read_tokens"),
    "cost_nanos": Sum("cost_nanos"),
    "reported_requests": Count("pk", filter=_REPORTED),
    "reported_cost_nanos": Sum("reported_cost_nanos"),
    "estimated_requests": Count("pk", filter=_ESTIMATED),
    "estimated_cost_nanos": Sum("cost_nanos", filter=_ESTIMATED),
    "unpriced_requests": Count("pk", filter=_UNPRICED),
    "unpriced_tokens": Sum(_TOKENS, filter=_UNPRICED),
}
THREAD = ("requests", "input_tokens", "output_tokens", "cost_nanos", "unpriced_requests", "unpriced_tokens")
THREAD_MEASURES: Mapping[str, Expression] = {name: MEASURES[name] for name in THREAD}


def rolled(names: tuple[str, ...]) -> Mapping[str, Expression]:
    """The sums of the same measures over rollup rows."""
    return {name: Sum(name) for name in names}
