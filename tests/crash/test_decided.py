"""A worker's process is killed before, while and after a person decides: the action runs as approved, with one key."""

from __future__ import annotations

from collections import Counter

import pytest

from agent.flows import approvals
from agent.models import Run, ToolCall
from tests.crash.conftest import ALICE, Desk, Parent
from tests.crash.ending import ended, ending, frames

BEFORE = 3  # commits until it waits: start, llm:0, the card
AFTER = 4  # and with the decision: the start again, the decision, the action, the end with llm:1

ASKING = [f"commit:{number}:{when}" for number in range(1, BEFORE + 1) for when in ("before", "after")]
ACTING = [f"commit:{number}:{when}" for number in range(1, AFTER + 1) for when in ("before", "after")]
ACTING += ["tool:cancel:begin", "tool:cancel:end", "model:1:3"]


def asked(desk: Desk) -> str:
    return desk.send("Cancel 7.", agent="acting")


def decide(run_id: str) -> None:
    """A person approves, as a request does in a process that outlives the worker's."""
    assert Run.objects.get(pk=run_id).status == "waiting"
    approvals.approve(ALICE, ToolCall.objects.get(run_id=run_id).pk)


def check(desk: Desk, parent: Parent, run_id: str) -> None:
    """The end is that of a turn that nobody disturbed, and nothing outside was done with another key."""
    if "decided" not in parent.known:
        whole = asked(desk)
        assert desk.drive(whole) == 0
        decide(whole)
        assert desk.drive(whole) == 0
        parent.known["decided"] = ending(whole)
    assert ending(run_id) == parent.known["decided"]
    assert ended(run_id)
    told = Counter(frame["kind"] for frame in frames(run_id))
    assert (told["approval-requested"], told["approval-settled"]) == (1, 1)


def touched(desk: Desk) -> Counter[str]:
    assert len({tuple(line) for line in desk.touched()}) == len({" ".join(line[:2]) for line in desk.touched()})
    return Counter(" ".join(line[:2]) for line in desk.touched())


@pytest.mark.parametrize("place", ASKING)
def test_a_turn_killed_before_it_waits_asks_once(desk: Desk, parent: Parent, place: str) -> None:
    run_id = asked(desk)
    desk.kill(run_id, place)
    desk.recover()
    decide(run_id)
    assert desk.drive(run_id) == 0
    done = touched(desk)
    assert (done["tool cancel"], done["model 1"]) == (1, 1)
    check(desk, parent, run_id)


@pytest.mark.parametrize("place", ACTING)
def test_a_turn_killed_after_its_decision_does_what_was_approved(desk: Desk, parent: Parent, place: str) -> None:
    run_id = asked(desk)
    assert desk.drive(run_id) == 0
    decide(run_id)
    desk.kill(run_id, place)
    desk.recover()
    done = touched(desk)
    in_the_action = place in {"tool:cancel:begin", "tool:cancel:end", "commit:2:after", "commit:3:before"}
    assert done["model 0"] == 1
    assert done["tool cancel"] <= 1 + in_the_action
    check(desk, parent, run_id)


def test_the_places_are_all_there_are(desk: Desk) -> None:
    run_id = asked(desk)
    assert desk.drive(run_id, at=f"commit:{BEFORE + 1}:before") == 0
    decide(run_id)
    assert desk.drive(run_id, at=f"commit:{AFTER + 1}:before") == 0
    assert Run.objects.get(pk=run_id).status == "completed"


@pytest.mark.parametrize("place", ["tool:settle:begin", "tool:settle:end"])
def test_an_action_that_must_not_happen_twice_is_left_to_a_person(desk: Desk, place: str) -> None:
    run_id = desk.send("Settle 7.", agent="holding")
    desk.kill(run_id, place)
    desk.recover()
    assert Run.objects.get(pk=run_id).status == "completed"
    call = ToolCall.objects.get(run_id=run_id)
    assert (call.status, call.executed_at) == ("failed", None)
    assert "outcome of this call is unknown" in str(call.error)
    assert touched(desk)["tool settle"] == (place == "tool:settle:end")
