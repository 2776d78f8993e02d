"""Durations as counts of log buckets, and the percentiles of them (spec 08 §5)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

GROWTH = 1.01 / 0.99  # so that the middle of a bucket is within 1 % of all that is in it
_LOG = math.log(GROWTH)
ZERO = "0"  # the bucket of 0 ms; a bucket of 1 ms and more is named by its number after a "b"

Histogram = Mapping[str, int]


def bucket(ms: int) -> str:
    """The bucket of a duration."""
    return ZERO if ms <= 0 else f"b{math.ceil(math.log(ms) / _LOG - 1e-9)}"


def value_of(name: str) -> int:
    """The duration that stands for a bucket, whole milliseconds."""
    if name == ZERO:
        return 0
    return round(2 * GROWTH ** int(name[1:]) / (GROWTH + 1))


def histogram(durations: Iterable[int | None]) -> dict[str, int]:
    """How many durations there are in each bucket; absent ones are not counted."""
    return dict(Counter(bucket(ms) for ms in durations if ms is not None))


def merged(histograms: Iterable[Histogram]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in histograms:
        total.update(each)
    return dict(total)


def approximate(counts: Histogram, share: float) -> int | None:
    """The nearest-rank percentile of a histogram, within 1 %; None of nothing."""
    total = sum(counts.values())
    if not total:
        return None
    rank, seen = _rank(share, total), 0
    for name in sorted(counts, key=_order):
        seen += counts[name]
        if seen >= rank:
            return value_of(name)
    return None


def nearest_rank(ordered: Sequence[int], share: float) -> int | None:
    """The value at position ceil(share × n) of an ascending list; None of nothing."""
    return ordered[_rank(share, len(ordered)) - 1] if ordered else None


def _rank(share: float, total: int) -> int:
    return max(1, math.ceil(round(share * total, 9)))


def _order(name: str) -> int:
    return -1 if name == ZERO else int(name[1:])
