"""The dated prices of the sample's models: one of them fell in the middle of the time."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from agent.models import ModelPrice
from governance.sample.cast import CENT, SampleModel


def prices_of(model: SampleModel, first: date, days: int) -> Iterator[ModelPrice]:
    """The prices of a model over these days, the oldest first; none for one whose price nobody knows."""
    start = datetime.combine(first, time.min, UTC) - timedelta(days=1)
    yield from (
        price
        for since, share in ((start, 100), (start + timedelta(days=days // 2), 80))
        if (price := _price(model, since, share)) is not None and (share == 100 or model.cheaper)
    )


def _price(model: SampleModel, since: datetime, share: int) -> ModelPrice | None:
    if model.prices is None:
        return None
    plain, output, write, read = model.prices
    return ModelPrice(
        id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{model.name} {since.isoformat()}")),
        model_id=model.name,
        input_per_million_nanos=plain * CENT * share // 100,
        output_per_million_nanos=output * CENT * share // 100,
        cache_write_per_million_nanos=None if write is None else write * CENT * share // 100,
        cache_read_per_million_nanos=None if read is None else read * CENT * share // 100,
        effective_from=since,
        source="sample",
        created_at=since,
    )
