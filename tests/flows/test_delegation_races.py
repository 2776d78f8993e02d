"""Parents and children at once: nobody is left waiting for a child that is over, and nobody locks the other out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agent.domain.model_calls import ModelRequest
from agent.flows import dispatch
from agent.flows.cancel import cancel
from agent.providers.scripted import Answer
from agent.runners.inline import InlineRunner
from tests.flows.conftest import ALICE
from tests.flows.delegating import ASK, MakeSite, child_of, made
from tests.store.subjects import orm_subject

FAMILIES = 12
ROUNDS = 6
SECONDS = 30


def asks_once(request: ModelRequest) -> Answer:
    return "Yes." if request.messages[-1].tool_results else ASK


def test_a_child_that_ends_while_its_parent_parks_is_never_missed(site: MakeSite) -> None:
    desk = made(site, {"desk": asks_once, "researcher": "Found it."})
    inline = InlineRunner()
    before = dispatch.use(inline)
    try:
        parents = [desk.send().run_id for _ in range(FAMILIES)]
        assert inline.wait(SECONDS)
    finally:
        dispatch.use(before)
        inline.stop(1)
    runs = [desk.store.get_run(run_id) for run_id in parents]
    assert [run and run.status for run in runs] == ["completed"] * FAMILIES
    assert {child_of(run).status for run in runs if run is not None} == {"completed"}


def test_a_stop_of_the_parent_and_the_end_of_the_child_meet_without_a_deadlock(site: MakeSite) -> None:
    desk = made(site, {"desk": [ASK] * ROUNDS, "researcher": "Found it."})
    for _ in range(ROUNDS):
        parent = desk.turn()
        child = child_of(parent)
        both: list[Callable[[], object]] = [partial(desk.drive, child.id), partial(cancel, ALICE, parent.id)]
        orm_subject().parallel(both)
        over = desk.store.get_run(parent.id)
        assert over is not None
        assert over.status == "cancelled"
        assert child_of(parent).status in {"completed", "cancelled", "queued"}
        if child_of(parent).status == "queued":
            assert desk.drive(child.id).status == "cancelled"
