"""The store in memory keeps every published promise."""

from __future__ import annotations

import pytest

from agent.testing import InMemoryStore
from agent.testing.contracts import STORE_CONTRACTS, StoreCase, StoreSubject

pytestmark = pytest.mark.once
CASES = [
    pytest.param(case, id=f"{name}: {case.name}") for name, contract in STORE_CONTRACTS.items() for case in contract
]


@pytest.mark.parametrize("case", CASES)
def test_promise(case: StoreCase) -> None:
    case.run(StoreSubject(InMemoryStore()))
