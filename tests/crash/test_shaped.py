"""A worker is killed anywhere around an answer: between the model, its judges, its form and what may be asked next."""

from __future__ import annotations

from collections import Counter

import pytest

from agent.models import Run, UsageEntry
from tests.crash.conftest import Desk, Parent
from tests.crash.ending import End, ended, ending

pytestmark = pytest.mark.once

# start, prompt, answer, verdict with the calls, results; prompt, answer, verdict, form, the end with the follow-ups
COMMITS = 10  # of which the first two are those of any turn
CALLS = ("llm:", "structured:", "followups:")
PLACES = [
    *(f"commit:{number}:{when}" for number in range(3, COMMITS + 1) for when in ("before", "after")),
    *("model:0:9", "model:1:5", "tool:look:end"),
    *("structured_output:begin", "structured_output:end", "follow_ups:begin", "follow_ups:end"),
]


def undisturbed(desk: Desk, known: dict[str, End]) -> End:
    if "shaped" not in known:
        run_id = desk.send(agent="shaped")
        assert desk.drive(run_id) == 0
        known["shaped"] = ending(run_id)
    return known["shaped"]


@pytest.mark.parametrize("place", PLACES)
def test_a_shaped_answer_killed_anywhere_ends_as_if_undisturbed(desk: Desk, parent: Parent, place: str) -> None:
    whole = undisturbed(desk, parent.known)
    assert "thirteen" not in whole.transcript
    run_id = desk.send(agent="shaped")
    left: Run = desk.kill(run_id, place)
    desk.recover()
    assert ending(run_id) == whole
    assert ended(run_id)
    begun = left.effect_name or ""
    broken = UsageEntry.objects.filter(run_id=run_id, step_key__contains="#").values_list("step_key", flat=True)
    assert list(broken) == ([f"{begun}#1.1"] if begun.startswith(CALLS) else [])
    assert max(Counter(tuple(line) for line in desk.touched()).values()) <= 2


def test_the_commits_are_all_there_are(desk: Desk) -> None:
    assert desk.drive(desk.send(agent="shaped"), at=f"commit:{COMMITS + 1}:before") == 0
