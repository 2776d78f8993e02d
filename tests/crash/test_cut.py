"""The database goes away for a moment at every point of a turn: the run goes on, and ends as if nothing happened."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.crash.conftest import Desk, Parent
from tests.crash.ending import ended, ending, repeated
from tests.crash.scenarios import (
    COMMIT_PLACES,
    COMMITS,
    ROW_PLACES,
    ROWS,
    SOME_PLACES,
    SUMMARY_PLACES,
    TOOL_PLACES,
    begin,
    undisturbed,
)

MODEL_PLACES = ["model:0:0", "model:0:7", "model:0:14", "model:1:0", "model:1:6"]
# Before the run is claimed, and once it is settled and only its last frames are missing.
HARMLESS = {"commit:1:before", *(f"rows:{ROWS - number}:after" for number in range(3))}
LAST_COMMIT = {"summary": f"commit:{COMMITS + 1}:after"}
PLACES = [
    *(("plain", place) for place in [*COMMIT_PLACES, *MODEL_PLACES, *TOOL_PLACES]),
    *(("shown", place) for place in ROW_PLACES),
    *(("regenerate", place) for place in SOME_PLACES),
    *(("stop", place) for place in SOME_PLACES),
    *(("summary", place) for place in SUMMARY_PLACES),
]


@pytest.mark.parametrize(("scenario", "place"), PLACES)
def test_a_turn_that_loses_its_database_ends_as_if_undisturbed(
    desk: Desk, parent: Parent, scenario: str, place: str
) -> None:
    whole = undisturbed(desk, scenario, parent.known)
    run_id = begin(desk, scenario)
    assert desk.drive(run_id, at=place, end="cut") == 0
    if not ended(run_id):
        desk.recover()
    assert ended(run_id)
    assert ending(run_id) == whole
    again = repeated(run_id)
    assert again.attempt == (1 if place in {*HARMLESS, LAST_COMMIT.get(scenario, f"commit:{COMMITS}:after")} else 2)
    assert set(again.restarts) <= {0, 1}
    assert len(set(again.broken)) == len(again.broken)
    done = Counter(" ".join(line[:2]) for line in desk.touched())
    assert max(done.values()) <= 2
    assert len({tuple(line) for line in desk.touched()}) == len(done)
