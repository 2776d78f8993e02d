"""Who and what appears in the sample: people, tenants, agents, models with their prices, tools, ways to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

CENT = 10**7  # nano-USD


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleModel:
    """A model: how often it is used, and what a million tokens cost in cents; None = nobody knows a price."""

    name: str
    weight: int
    prices: tuple[int, int, int | None, int | None] | None  # input, output, cache write, cache read
    reports: bool = False  # its provider says what a call cost
    cheaper: bool = False  # its price fell in the middle of the time


MODELS: Sequence[SampleModel] = (
    SampleModel(name="large-4", weight=34, prices=(300, 1500, 375, 30), cheaper=True),
    SampleModel(name="small-4", weight=38, prices=(25, 125, 31, 3)),
    SampleModel(name="fast-2", weight=18, prices=(10, 40, None, None)),
    SampleModel(name="hosted-70b", weight=7, prices=(60, 90, None, None), reports=True),
    SampleModel(name="local-8b", weight=2, prices=(0, 0, None, None)),
    SampleModel(name="preview-5", weight=1, prices=None),
)
AGENTS: Mapping[str | None, int] = {"shop": 52, "billing": 26, "search": 14, "translator": 6, None: 2}
TENANTS: Mapping[str | None, int] = {"north": 46, "south": 30, "west": 18, None: 6}
PURPOSES: Mapping[str, int] = {"chat": 88, "follow_ups": 7, "history_summary": 3, "structured_output": 2}
TOOLS: Sequence[tuple[str, str, int]] = (
    ("lookup_order", "read", 50),
    ("search_catalogue", "read", 25),
    ("read_invoice", "read", 12),
    ("refund_order", "action", 8),
    ("change_address", "action", 5),
)
ERRORS: Mapping[str | None, int] = {"run_failed": 70, "quota_exceeded": 18, "model_no_output": 10, None: 2}
SUBJECTS = (
    "Broken lamp",
    "Where is my parcel?",
    "Invoice of last month",
    "A chair for the balcony",
    "Change my address",
    "Refund for order",
    "Delivery on a Saturday",
    "Colour of the sofa",
)
PEOPLE = 300
MOST_RUNS = 100_000  # beyond, runs make more calls: the ledger grows, the lists stay as they are
WEEKDAYS = (1.0, 1.08, 1.05, 1.0, 0.9, 0.35, 0.3)  # Monday first
OPEN_FROM, OPEN_FOR = timedelta(hours=6), timedelta(hours=17)
