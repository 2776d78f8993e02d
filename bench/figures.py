"""Samples as figures: medians first, because a shared machine spoils means."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What is told of a set of samples, in their unit."""

    n: int
    p50: float
    p95: float
    min: float
    max: float
    mean: float
    stdev: float

    @classmethod
    def of(cls, samples: Iterable[float]) -> Spread:
        """At least one sample is needed."""
        ordered = sorted(samples)
        return cls(
            n=len(ordered),
            p50=statistics.median(ordered),
            p95=quantile(ordered, 0.95),
            min=ordered[0],
            max=ordered[-1],
            mean=statistics.fmean(ordered),
            stdev=statistics.stdev(ordered) if len(ordered) > 1 else 0.0,
        )

    def scaled(self, factor: float) -> Spread:
        """The same spread in another unit."""
        values = {name: value * factor for name, value in asdict(self).items() if name != "n"}
        return Spread(n=self.n, **values)

    def to_json(self) -> dict[str, float | int]:
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


def quantile(ordered: list[float], share: float) -> float:
    """The sample below which this share of the sorted samples lies, between neighbours in proportion."""
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
