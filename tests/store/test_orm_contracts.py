"""The store on the database of this leg keeps every published promise."""

from __future__ import annotations

import pytest

from agent.testing.contracts import STORE_CONTRACTS, StoreCase
from tests.store.subjects import orm_subject

CASES = [
    pytest.param(case, id=f"{name}: {case.name}", marks=pytest.mark.django_db(transaction=case.commits))
    for name, contract in STORE_CONTRACTS.items()
    for case in contract
]


@pytest.mark.parametrize("case", CASES)
def test_promise(case: StoreCase) -> None:
    case.run(orm_subject())
