"""A worker's process is killed at every point of a turn; another one goes on, and the end is as if nothing happened."""

from __future__ import annotations

import pytest

from tests.crash.conftest import Desk, Parent
from tests.crash.ending import ended, ending, frames, repeated
from tests.crash.scenarios import PLACES, ROWS, begin, check_effects, expected, undisturbed


@pytest.mark.parametrize(("scenario", "place"), PLACES)
def test_a_turn_killed_anywhere_ends_as_if_undisturbed(desk: Desk, parent: Parent, scenario: str, place: str) -> None:
    whole = undisturbed(desk, scenario, parent.known)
    run_id = begin(desk, scenario)
    again = expected(desk.kill(run_id, place))
    desk.recover()
    assert repeated(run_id) == again
    check_effects(desk, again, steps=1 if scenario == "stop" else 2)
    assert ending(run_id) == whole
    assert ended(run_id)


def test_the_places_are_all_there_are(desk: Desk) -> None:
    run_id = begin(desk, "shown")
    assert desk.drive(run_id, at=f"rows:{ROWS + 1}:before") == 0
    assert len(frames(run_id)) + 1 == ROWS
