"""A store that breaks one promise about proposals fails the case that states it; each case has such a store."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agent.testing import InMemoryStore
from agent.testing.contracts import STORE_CONTRACTS, ContractMismatch, StoreSubject
from tests.store import broken_proposals as broken

pytestmark = pytest.mark.once

Broken = tuple[type[InMemoryStore], str]
BROKEN: dict[str, Sequence[Broken]] = {
    "proposals": [
        (broken.ForgetsItself, "01"),
        (broken.SeesEveryScope, "02"),
        (broken.LastDecisionWins, "03"),
        (broken.TwoEyesAreEnough, "03b"),
        (broken.IsLate, "04"),
        (broken.AnyFenceWill, "05"),
        (broken.AlwaysRetries, "05b"),
        (broken.NeverRunsAgain, "05c"),
        (broken.ListsNewestFirst, "06"),
        (broken.TakesAnEmptyTenantForNone, "07"),
        (broken.TakesAnything, "08"),
        (broken.TakesAnything, "09"),
        (broken.ObeysAnything, "10"),
        (broken.ListsNewestFirst, "11"),
        (broken.TakesAnything, "12"),
        (broken.DropsStrangeCharacters, "13"),
        (broken.Lists, "14"),
        (broken.TakesAbsenceForNull, "15"),
        (broken.TakesAnything, "16"),
        (broken.AlwaysHasSomethingToFill, "17"),
    ],
    "proposal_worker": [
        (broken.OnlyLooks, "01"),
        (broken.ForgetsTheLost, "02"),
        (broken.RetriesForEver, "02b"),
        (broken.ExpiresWithoutEnd, "03"),
        (broken.RenewsNothing, "04"),
        (broken.FindsWhatIsOver, "05"),
        (broken.NewestFirst, "06"),
        (broken.WorksForAnybody, "07"),
    ],
    "proposal_replacement": [
        (broken.NeverSupersedes, "01"),
        (broken.HasOneGroup, "02"),
        (broken.HasRoomForAll, "03"),
        (broken.IsLate, "04"),
        (broken.ReplacesItself, "05"),
        (broken.HasRoomForAll, "06"),
        (broken.HasNoRoomAgain, "07"),
    ],
    "proposal_outcomes": [
        (broken.TellsOnlySuccess, "01"),
        (broken.MarksWithoutTelling, "02"),
        (broken.WantsATokenAlways, "02b"),
        (broken.InterruptsRuns, "02c"),
        (broken.InterruptsRuns, "03"),
        (broken.TellsAgain, "04"),
        (broken.TakesAnyToken, "05"),
        (broken.KeepsWhatNobodyReads, "06"),
        (broken.ClaimsWhatIsNotOver, "08"),
    ],
}
ROWS = [(contract, number, store) for contract, rows in BROKEN.items() for store, number in rows]


@pytest.mark.parametrize(("contract", "number", "store"), ROWS, ids=[f"{r[2].__name__}-{r[0]}-{r[1]}" for r in ROWS])
def test_a_broken_promise_is_named(contract: str, number: str, store: type[InMemoryStore]) -> None:
    [case] = [case for case in STORE_CONTRACTS[contract] if case.name.split()[0] == number]
    with pytest.raises(ContractMismatch):
        case.run(StoreSubject(store()))


@pytest.mark.parametrize("contract", BROKEN)
def test_each_case_can_fail(contract: str) -> None:
    assert [number for _, number in BROKEN[contract]] == sorted(
        case.name.split()[0] for case in STORE_CONTRACTS[contract]
    )
