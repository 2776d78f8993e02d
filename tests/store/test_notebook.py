"""A host's own store passes the published cases of what it keeps; and these cases use nothing but what they name."""

from __future__ import annotations

import sys
from typing import Any, cast

import pytest

from agent.store import CAPABILITIES, REQUIRED, AgentStore
from agent.testing import InMemoryStore
from agent.testing.contracts import CONTRACT_NEEDS, STORE_CONTRACTS, StoreCase, StoreSubject, cases_for
from tests.notebook import NotebookStore

pytestmark = pytest.mark.once

CAPABILITY_OF = {
    member: capability
    for capability, protocol in CAPABILITIES.items()
    for member in vars(protocol)
    if not member.startswith("_")
}
OWN_CASES = [pytest.param(case, id=f"{name}: {case.name}") for name, case in cases_for(NotebookStore.capabilities)]
ALL_CASES = [
    pytest.param(CONTRACT_NEEDS.get(name, frozenset()) | case.needs, case, id=f"{name}: {case.name}")
    for name, contract in STORE_CONTRACTS.items()
    for case in contract
]


class Lesser(InMemoryStore):
    """A store that has the capabilities it is given, and no other."""

    def __init__(self, capabilities: frozenset[str]) -> None:
        super().__init__()
        self.capabilities = capabilities

    def __getattribute__(self, name: str) -> Any:
        asked_by = sys._getframe(1).f_globals["__name__"]
        if name in CAPABILITY_OF and not asked_by.startswith("agent.testing.memory"):
            assert CAPABILITY_OF[name] in self.capabilities, name
        return super().__getattribute__(name)


def test_it_inherits_nothing_of_ours() -> None:
    assert {base.__module__.partition(".")[0] for base in NotebookStore.__mro__} == {"tests", "builtins"}


@pytest.mark.parametrize("case", OWN_CASES)
def test_it_keeps_every_promise_of_its_capabilities(case: StoreCase) -> None:
    case.run(StoreSubject(cast("AgentStore", NotebookStore())))


@pytest.mark.parametrize(("named", "case"), ALL_CASES)
def test_a_case_uses_no_capability_that_it_does_not_name(named: frozenset[str], case: StoreCase) -> None:
    case.run(StoreSubject(Lesser(named | REQUIRED)))
