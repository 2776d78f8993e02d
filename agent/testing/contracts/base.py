"""What the published contracts share: a case, the error of a broken promise, comparison as JSON.

A contract is a list of cases. `case.run(subject)` returns when the promise holds and raises `ContractMismatch` when it
does not; it needs no test framework:

    @pytest.mark.parametrize("case", PROVIDER_CONTRACT, ids=lambda case: case.name)
    def test_contract(case): case.run(subject)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Subject = TypeVar("Subject")


class ContractMismatch(AssertionError):
    """The implementation does not keep the promise; the message says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Case(Generic[Subject]):
    """One promise: `name` states it, `run` proves it against a subject."""

    name: str
    run: Callable[[Subject], None]


def expect(holds: object, what: str) -> None:
    """Raise `ContractMismatch` with this sentence unless it holds."""
    if not holds:
        raise ContractMismatch(what)


def same(actual: object, expected: object, what: str) -> None:
    """Raise `ContractMismatch` unless both are the same JSON; the order of keys does not matter."""
    came, wanted = _canonical(actual), _canonical(expected)
    if came != wanted:
        raise ContractMismatch(f"{what}\n  expected: {wanted}\n  actual:   {came}")


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_as_json)


def _as_json(value: object) -> object:
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return str(value)
