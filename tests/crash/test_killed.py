"""A worker's process is killed at every point of a turn; another one goes on, and the end is as if nothing happened."""

from __future__ import annotations

import pytest

from agent.flows.cancel import stop
from agent.models import Message, Run, Thread, ToolCall
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
    check_effects(desk, again, scenario)
    assert ending(run_id) == whole
    assert ended(run_id)


def test_the_places_are_all_there_are(desk: Desk) -> None:
    run_id = begin(desk, "shown")
    assert desk.drive(run_id, at=f"rows:{ROWS + 1}:before") == 0
    assert len(frames(run_id)) + 1 == ROWS


@pytest.mark.parametrize("place", ["commit:2:after", "tool:look:end", "commit:3:after", "model:1:3"])
def test_a_turn_killed_and_stopped_does_not_poison_the_next_one(desk: Desk, place: str) -> None:
    run_id = begin(desk, "plain")
    left = desk.kill(run_id, place)
    assert stop(run_id)  # nobody is there who could hear it
    desk.recover()
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.error_code) == ("cancelled", None)
    answer = Message.objects.get(run_id=run_id, role="assistant")
    calls = ToolCall.objects.filter(message=answer)
    recorded = not (left.effect_name or "").startswith("tool:")
    assert {call.status for call in calls} == ({"auto_executed", "failed"} if recorded else {"failed"})

    next_id = desk.send("Hello?", thread_id=run.thread_id)
    assert desk.drive(next_id) == 0
    assert Run.objects.get(pk=next_id).status == "completed"
    assert Message.objects.get(pk=answer.pk).content == answer.content  # what was said is still there
    assert Thread.objects.get(pk=run.thread_id).active_run_id is None
    assert ended(run_id)
    assert ended(next_id)
