"""Both stores, told the same at random, answer the same and end in the same state."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.store.twins.calls import Calls
from tests.store.twins.conversation import Conversation
from tests.store.twins.machine import Twins
from tests.store.twins.money import Money
from tests.store.twins.proposing import Proposing
from tests.store.twins.queueing import Queueing
from tests.store.twins.remembering import Remembering
from tests.store.twins.working import Working


class Everything(Conversation, Calls, Working, Queueing, Money, Remembering):
    """All that a store is told, in any order: rows of one kind meet the rows of another."""


class Talking(Conversation, Calls):
    """Messages, the calls in them, and what people decide about these."""


class Running(Working, Calls):
    """Runs, their leases, journals and frames."""


class Waiting(Conversation, Queueing):
    """Messages that wait, in threads that are claimed, copied and deleted."""


class Acting(Conversation, Queueing, Proposing):
    """Proposals, and the threads that are told how they end."""


MACHINES = [(Everything, 20), (Talking, 30), (Running, 40), (Waiting, 30), (Money, 20), (Acting, 30), (Remembering, 10)]


@pytest.mark.django_db
@pytest.mark.parametrize(("machine", "examples"), MACHINES, ids=[machine.__name__ for machine, _ in MACHINES])
def test_the_database_answers_as_memory_does(machine: type[Twins], examples: int) -> None:
    sizes = settings(
        max_examples=examples, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=sizes)
