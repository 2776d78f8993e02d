"""The journal by itself: what a step hands back the first time and on every replay, and who may write it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.actor import Actor
from agent.domain.commands import NewRun
from agent.domain.runs import RunLease
from agent.errors import Invalid, LeaseLost, ReplayDiverged
from agent.flows.journal import Attempt, Journal
from agent.testing.memory import InMemoryStore

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)


class Bench:
    """A run in memory, and workers that take it one after the other."""

    def __init__(self) -> None:
        self.store = InMemoryStore()
        thread = self.store.create_thread(actor=Actor("alice"))
        run = self.store.create_run(NewRun(id="run", thread_id=thread.id, actor=Actor("alice"), input={}))
        self.run_id = run.id
        self.leases: list[RunLease] = []

    def worker(self) -> Journal:
        """The next worker; the one before loses the run."""
        if self.leases:
            self.store.release_run(self.leases[-1])
        lease = self.store.claim_run(self.run_id, "me", 60)
        opened = self.store.open_run(self.run_id)
        assert lease is not None
        assert opened is not None
        self.leases.append(lease)
        return Journal(self.store, lease, opened)


def never() -> Any:
    raise AssertionError("a recorded step is never run")


def written(journal: Journal, value: Any) -> Any:
    with journal.unit() as unit:
        return unit.write("step", lambda: value)


@given(VALUES)
def test_the_first_run_and_every_replay_see_the_same_bytes(value: object) -> None:
    bench = Bench()
    first = written(bench.worker(), value)
    with bench.worker().unit() as unit:
        again = unit.write("step", never)
    assert json.dumps(again) == json.dumps(first)
    assert isinstance(value, tuple) or first == json.loads(json.dumps(value))


@given(VALUES)
def test_an_effect_hands_back_what_a_replay_will(value: object) -> None:
    bench = Bench()
    journal = bench.worker()
    attempt = marked(journal, "llm:0")
    with journal.unit() as unit:
        first = unit.settle(attempt, lambda: value)
    replayed = marked(bench.worker(), "llm:0")
    assert json.dumps(replayed.payload()) == json.dumps(first)


def marked(journal: Journal, name: str) -> Attempt:
    with journal.unit() as unit:
        return unit.mark(name)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: "a"}, {"a": {None: 1}}, {"a", "b"}, object()])
def test_what_would_come_back_as_something_else_is_not_recorded(value: object) -> None:
    bench = Bench()
    with pytest.raises(Invalid):
        written(bench.worker(), value)
    assert bench.store.steps(bench.run_id) == []


def test_another_name_at_a_position_is_a_divergence_and_changes_nothing() -> None:
    bench = Bench()
    written(bench.worker(), 1)
    journal = bench.worker()
    with pytest.raises(ReplayDiverged), journal.unit() as unit:
        unit.write("other", never)
    with pytest.raises(ReplayDiverged):
        marked(journal, "other")
    assert [step.name for step in bench.store.steps(bench.run_id)] == ["step"]


def test_a_marker_is_asked_for_where_it_was_and_gives_its_position_back_where_it_was_not() -> None:
    fresh, old = Bench(), Bench()
    with fresh.worker().unit() as unit:
        assert unit.patched("new-shape")
        unit.write("step", lambda: 1)
    with fresh.worker().unit() as unit:
        assert unit.patched("new-shape")
        assert unit.write("step", never) == 1
    assert [step.name for step in fresh.store.steps("run")] == ["patch:new-shape", "step"]

    written(old.worker(), 1)
    with old.worker().unit() as unit:
        assert not unit.patched("new-shape")
        assert not unit.patched("newer-shape")
        assert unit.write("step", never) == 1
        unit.write("after", lambda: 2)
    assert [(step.position, step.name) for step in old.store.steps("run")] == [(0, "step"), (1, "after")]


def test_an_effect_that_was_begun_and_not_recorded_is_a_repeat() -> None:
    bench = Bench()
    assert not marked(bench.worker(), "llm:0").repeated
    assert marked(bench.worker(), "llm:0").repeated


def test_a_unit_that_fails_gives_its_positions_back() -> None:
    bench = Bench()
    journal = bench.worker()
    with pytest.raises(ZeroDivisionError), journal.unit() as unit:
        unit.write("step", lambda: 1 // 0)
    assert written(journal, 1) == 1
    assert [(step.position, step.name) for step in bench.store.steps("run")] == [(0, "step")]


def test_who_has_lost_the_lease_writes_nothing() -> None:
    bench = Bench()
    late, now = bench.worker(), bench.worker()
    with pytest.raises(LeaseLost):
        written(late, "late")
    with pytest.raises(LeaseLost):
        marked(late, "step")
    assert written(now, "now") == "now"
    with pytest.raises(LeaseLost):
        written(late, "too late")
    assert [step.payload for step in bench.store.steps("run")] == ["now"]
