"""A worker is killed before, while and after a person answers what the agent asks first: asked once, told once."""

from __future__ import annotations

from collections import Counter

import pytest

from agent.flows import approvals
from agent.models import Run, ToolCall
from tests.crash.conftest import ALICE, Desk, Parent
from tests.crash.ending import ended, ending, frames

BEFORE = 2  # commits until it waits: start, the questions
AFTER = 3  # and with the answers: the start again, the answers, the end with llm:0

ASKING = [f"commit:{number}:{when}" for number in range(1, BEFORE + 1) for when in ("before", "after")]
ASKING += ["rows:1:after", "rows:2:after"]
ANSWERED = [f"commit:{number}:{when}" for number in range(1, AFTER + 1) for when in ("before", "after")]
ANSWERED += ["rows:1:before", "rows:1:after", "model:0:3"]


def asked(desk: Desk) -> str:
    return desk.send("Count 7.", agent="receiving")


def answer(run_id: str) -> None:
    """A person answers, as a request does in a process that outlives the worker's."""
    assert Run.objects.get(pk=run_id).status == "waiting"
    approvals.answer(ALICE, ToolCall.objects.get(run_id=run_id).pk, {})


def check(desk: Desk, parent: Parent, run_id: str) -> None:
    """The end is that of a turn that nobody disturbed."""
    if "asked" not in parent.known:
        whole = asked(desk)
        assert desk.drive(whole) == 0
        answer(whole)
        assert desk.drive(whole, at=f"commit:{AFTER + 1}:before") == 0
        parent.known["asked"] = ending(whole)
    assert ending(run_id) == parent.known["asked"]
    assert ended(run_id)
    told = Counter(frame["kind"] for frame in frames(run_id))
    assert (told["elicitation"], told["tool-output"]) == (1, 1)


@pytest.mark.parametrize("place", ASKING)
def test_a_turn_killed_before_it_waits_asks_once(desk: Desk, parent: Parent, place: str) -> None:
    run_id = asked(desk)
    desk.kill(run_id, place)
    desk.recover()
    answer(run_id)
    assert desk.drive(run_id) == 0
    check(desk, parent, run_id)


@pytest.mark.parametrize("place", ANSWERED)
def test_a_turn_killed_after_its_answers_tells_them_once(desk: Desk, parent: Parent, place: str) -> None:
    run_id = asked(desk)
    assert desk.drive(run_id) == 0
    answer(run_id)
    desk.kill(run_id, place)
    desk.recover()
    check(desk, parent, run_id)
