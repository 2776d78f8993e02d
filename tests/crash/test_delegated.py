"""A worker is killed anywhere in a run that asks another agent, or in the run that is asked: as if undisturbed."""

from __future__ import annotations

import pytest

from agent.models import Message, Run
from tests.crash.conftest import Desk, Parent
from tests.crash.ending import End, ended, ending

ASKS = 2  # commits until it waits: start, llm:0 with the call and the child
ANSWERS = 2  # of the child: start, the end with llm:0
GOES_ON = 3  # and with the answer: the start again, the result, the end with llm:1


def commits(count: int) -> list[str]:
    return [f"commit:{number}:{when}" for number in range(1, count + 1) for when in ("before", "after")]


PLACES = [
    *(("asking", place) for place in commits(ASKS)),
    *(("asked", place) for place in [*commits(ANSWERS), "model:0:3", "rows:1:after", "rows:3:before"]),
    *(("answered", place) for place in [*commits(GOES_ON), "rows:1:before", "model:1:3"]),
]


def child_of(run_id: str) -> Run:
    """The only one: a second would have been begun twice."""
    return Run.objects.get(parent_run_id=run_id)


def killed(desk: Desk, run_id: str, stage: str, place: str) -> None:
    """Work on the family up to the place, and die there."""
    assert desk.drive_alone(run_id, at=place if stage == "asking" else "") == (-9 if stage == "asking" else 0)
    if stage == "asking":
        return
    child_id = child_of(run_id).pk
    assert desk.drive_alone(child_id, at=place if stage == "asked" else "") == (-9 if stage == "asked" else 0)
    if stage == "answered":
        assert desk.drive_alone(run_id, at=place) == -9


def both(run_id: str) -> tuple[End, End]:
    child = child_of(run_id)
    assert child.status == "completed"
    return ending(run_id), ending(child.pk)


def undisturbed(desk: Desk, agent: str) -> tuple[End, End]:
    run_id = desk.send("Count 7.", agent=agent)
    for member in (run_id, None, run_id) if agent == "asking" else (run_id, None):
        assert desk.drive_alone(member or child_of(run_id).pk) == 0
    return both(run_id)


@pytest.mark.parametrize(("stage", "place"), PLACES)
def test_a_family_that_is_killed_ends_as_if_undisturbed(desk: Desk, parent: Parent, stage: str, place: str) -> None:
    run_id = desk.send("Count 7.", agent="asking")
    killed(desk, run_id, stage, place)
    desk.recover()
    found = both(run_id)
    if "asking" not in parent.known:
        parent.known["asking"], parent.known["asked"] = undisturbed(desk, "asking")
    assert found == (parent.known["asking"], parent.known["asked"])
    assert ended(run_id)


@pytest.mark.parametrize("place", [*commits(ANSWERS), "rows:1:after"])
def test_a_detached_run_that_is_killed_delivers_once(desk: Desk, parent: Parent, place: str) -> None:
    run_id = desk.send("Count 7.", agent="leaving")
    assert desk.drive_alone(run_id) == 0
    child = child_of(run_id)
    assert desk.drive_alone(child.pk, at=place) == -9
    desk.recover()
    found = both(run_id)
    if "leaving" not in parent.known:
        parent.known["leaving"], parent.known["left"] = undisturbed(desk, "leaving")
    assert found == (parent.known["leaving"], parent.known["left"])
    assert ended(child.pk)


@pytest.mark.once  # the database is the business of those above
@pytest.mark.parametrize("place", commits(4))
def test_who_leaves_a_task_to_another_and_is_killed_has_left_it_once(desk: Desk, place: str) -> None:
    run_id = desk.send("Count 7.", agent="leaving")
    assert desk.drive_alone(run_id, at=place) == -9
    desk.recover()
    child = child_of(run_id)
    assert (Run.objects.get(pk=run_id).status, child.status) == ("completed", "completed")
    said = Message.objects.filter(thread_id=Run.objects.get(pk=run_id).thread_id, role="assistant")
    assert sorted(map(str, said.values_list("run_id", flat=True))) == sorted([run_id, run_id, child.pk])
