"""The state tables have the moves of the spec and no other."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from agent.domain.states import (
    DELIVERY_MOVES,
    EXECUTION_MOVES,
    OPEN_TOOL_CALL,
    PROPOSAL_MOVES,
    RUN_MOVES,
    TERMINAL_RUN,
    TERMINAL_TOOL_CALL,
    TOOL_CALL_MOVES,
    Decision,
    DeliveryStatus,
    ExecutionStatus,
    RunStatus,
    ToolCallStatus,
    check_move,
)
from agent.errors import Conflict, IllegalMove

RUN = """
    queued: running completed failed cancelled
    running: queued running waiting completed failed cancelled
    waiting: queued completed failed cancelled
"""
TOOL_CALL = """
    running: auto_executed executed failed
    pending_approval: executed rejected expired failed
"""
PROPOSAL = "pending: approved rejected expired superseded"
EXECUTION = """
    queued: executing
    executing: executing succeeded failed unknown
    unknown: succeeded failed queued
"""
DELIVERY = """
    pending: admitting delivered
    admitting: admitting pending delivered discarded
"""
TABLES = [
    (RUN_MOVES, RunStatus, RUN),
    (TOOL_CALL_MOVES, ToolCallStatus, TOOL_CALL),
    (PROPOSAL_MOVES, Decision, PROPOSAL),
    (EXECUTION_MOVES, ExecutionStatus, EXECUTION),
    (DELIVERY_MOVES, DeliveryStatus, DELIVERY),
]


@pytest.mark.parametrize(("moves", "states", "written"), TABLES, ids=lambda value: getattr(value, "__name__", ""))
def test_every_move_is_the_one_of_the_table(
    moves: Mapping[str, frozenset[str]], states: type[RunStatus], written: str
) -> None:
    allowed = {
        (seen.strip(), new)
        for seen, _, news in (line.partition(":") for line in written.strip().splitlines())
        for new in news.split()
    }
    for seen, new in product(states, states):
        if (seen.value, new.value) in allowed:
            check_move(moves, seen.value, new)
        else:
            with pytest.raises(IllegalMove):
                check_move(moves, seen, new)


def test_terminal_states_have_no_way_out() -> None:
    assert TERMINAL_RUN.isdisjoint(RUN_MOVES)
    assert TERMINAL_TOOL_CALL.isdisjoint(TOOL_CALL_MOVES)
    assert set(TOOL_CALL_MOVES) == OPEN_TOOL_CALL


def test_a_refused_move_says_which_and_is_a_conflict() -> None:
    with pytest.raises(Conflict, match="from completed to running"):
        check_move(RUN_MOVES, "completed", RunStatus.RUNNING)


def test_states_are_their_words() -> None:
    stored: str = "queued"
    assert stored == RunStatus.QUEUED
    assert stored in frozenset(RunStatus)
    assert f"{RunStatus.QUEUED}" == stored
