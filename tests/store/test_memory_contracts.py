"""The store in memory keeps every published promise."""

from __future__ import annotations

import pytest

from agent.testing import InMemoryConfirmTokens, InMemoryStore
from agent.testing.contracts import CONFIRM_TOKEN_CONTRACT, STORE_CONTRACTS, StoreCase, StoreSubject

pytestmark = pytest.mark.once
CASES = [
    pytest.param(case, id=f"{name}: {case.name}") for name, contract in STORE_CONTRACTS.items() for case in contract
]


@pytest.mark.parametrize("case", CASES)
def test_promise(case: StoreCase) -> None:
    case.run(StoreSubject(InMemoryStore()))


@pytest.mark.parametrize("case", CONFIRM_TOKEN_CONTRACT, ids=lambda case: case.name)
def test_promise_about_confirm_tokens_of_the_stand_in(case: StoreCase) -> None:
    case.run(StoreSubject(InMemoryConfirmTokens()))  # type: ignore[arg-type]  # a store of this capability alone
