"""What a turn costs the database, counted: statements and commits, boundaries of transactions left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection

from agent.domain.commands import ToolDecision
from agent.domain.runs import Step
from agent.store import OrmStore
from tests.store.turns import ANA, PRICE, Spent, Turn, spending

pytestmark = pytest.mark.django_db(transaction=True)

# Where UPDATE has no RETURNING, a claim and each recorded step read what they wrote: one statement more.
READS_BACK = 1 if connection.vendor == "mysql" else 0


@pytest.fixture
def store() -> OrmStore:
    store = OrmStore(model_aliases={})
    store.seed_prices([PRICE])
    return store


@pytest.fixture
def turn(store: OrmStore) -> Turn:
    return Turn(store, "run-1")


def spent(unit: Callable[[], object]) -> Spent:
    with spending() as spent:
        unit()
    return spent


def test_a_plain_turn_on_a_new_thread_takes_29_statements_in_six_commits(turn: Turn) -> None:
    units = [turn.admit, turn.start, turn.ask_for_a_tool, turn.settle_the_tool, turn.answer, turn.end]
    costs = [spent(unit) for unit in units]
    expected = [4, 5 + 2 * READS_BACK, 7 + READS_BACK, 4 + READS_BACK, 6 + READS_BACK, 3]
    assert [cost.statements for cost in costs] == expected
    assert [cost.commits for cost in costs] == [1] * 6


def test_a_known_thread_is_admitted_in_five_statements(store: OrmStore, turn: Turn) -> None:
    turn.thread_id = store.create_thread(actor=ANA).id
    assert spent(turn.admit).statements == 5


def test_the_answer_may_end_the_run_in_one_unit(store: OrmStore, turn: Turn) -> None:
    """The last record and the settlement are one guarded update and one insert: 28 statements in all."""
    for unit in (turn.admit, turn.start, turn.ask_for_a_tool, turn.settle_the_tool):
        unit()
    turn._record = lambda *_positions, **_effect: None  # type: ignore[method-assign]

    def both() -> None:
        with store.atomic():
            turn.answer()
            turn.end()

    assert spent(both) == Spent(statements=7, commits=1)


def test_a_repeat_costs_one_read_more_and_breaks_no_transaction(store: OrmStore, turn: Turn) -> None:
    for unit in (turn.admit, turn.start, turn.ask_for_a_tool):
        unit()
    with store.atomic():
        assert spent(lambda: store.record_tool_call(turn.call())).statements == 2
        assert store.get_tool_call(turn.call_id) is not None


def test_frames_go_in_with_one_statement_and_no_transaction_of_their_own(store: OrmStore, turn: Turn) -> None:
    turn.admit()
    cost = spent(lambda: store.append_frames(turn.run_id, ["{}\n"] * 50, attempt=0))
    assert cost == Spent(statements=1 + READS_BACK, commits=0)


@pytest.mark.parametrize("steps", [0, 1, 40])
def test_a_run_is_opened_with_its_whole_journal_in_one_statement(store: OrmStore, turn: Turn, steps: int) -> None:
    turn.admit()
    lease = store.claim_run(turn.run_id, "w", 60)
    assert lease is not None
    store.record_steps(lease, [Step(position=place, name="s", payload=place) for place in range(1, steps + 1)])
    with spending() as cost:
        opened = store.open_run(turn.run_id)
    assert opened is not None
    assert [step.position for step in opened.steps] == list(range(steps + 1))
    assert cost.statements == 1


def test_what_is_refused_under_a_lost_lease_costs_one_statement(store: OrmStore, turn: Turn) -> None:
    turn.admit()
    old = store.claim_run(turn.run_id, "w", 0)
    assert old is not None
    assert store.claim_run(turn.run_id, "w2", 60) is not None
    assert spent(lambda: store.renew_run(old)).statements == 1


def test_a_decision_that_comes_too_late_locks_nothing(store: OrmStore, turn: Turn) -> None:
    """The run that executes a decided call holds its row before the run's: a lock here could deadlock with it."""
    for unit in (turn.admit, turn.start, turn.ask_for_a_tool, turn.settle_the_tool):
        unit()
    late = spent(lambda: store.decide_tool_call(turn.call_id, ToolDecision(decision="approved", actor=ANA)))
    assert late.statements == 1
