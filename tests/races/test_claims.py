"""B67: many workers and few rows, in the isolation that the database has by default: each row once, and no deadlock."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agent.domain.actor import Actor
from agent.models import ActionProposal, Message, Thread
from agent.store import get_store
from agent.testing.contracts.proposal_rows import approved
from tests.races.conftest import Race
from tests.races.test_decisions import scope

ALICE = Actor("alice")
WORKERS = 20
ROWS = 60


def raised(outcomes: list[Any]) -> list[Any]:
    return [outcome for outcome in outcomes if isinstance(outcome, dict) and "raised" in outcome]


def test_twenty_workers_take_each_of_many_proposals_once(race: Race) -> None:
    waiting = {approved(get_store(), f"p{number}", scope()).id for number in range(ROWS)}
    taken: list[Any] = []
    for number in range(ROWS // WORKERS + 1):
        taken += race([("take", {"worker": f"w{number}-{worker}"}) for worker in range(WORKERS)])
    assert raised(taken) == []
    assert Counter(one for one in taken if one is not None) == Counter(waiting)
    rows = ActionProposal.objects.values_list("execution_status", "version")
    assert set(rows) == {("executing", 3)}  # made, approved, taken: nobody who lost has written


def test_the_same_word_written_by_many_is_written_once(race: Race) -> None:
    """A guarded update that would change nothing answers as one that found nothing: on MySQL it counts no row."""
    proposal = approved(get_store(), "p", scope())
    before = ActionProposal.objects.values().get()
    answers = race([("approve", {"proposal_id": proposal.id, "who": "lead"})] * WORKERS)
    assert Counter(status for status, _ in answers) == {"unchanged": WORKERS}
    assert ActionProposal.objects.values().get() == before


def test_many_who_write_to_the_same_conversations_lock_nobody_out(race: Race) -> None:
    """Sends, stops, kicks and deletions of the same few conversations, each in its own order of locks."""
    threads = [get_store().create_thread(actor=ALICE).id for _ in range(3)]
    for number in range(4):
        calls: list[tuple[str, dict[str, Any]]] = []
        for place in range(WORKERS):
            thread = threads[place % len(threads)]
            calls.append(("kick", {"thread_id": thread}) if place % 5 == 4 else ("send", {
                "thread_id": thread, "message": f"{number}.{place}", "mode": "auto" if place % 2 else "interrupt",
            }))  # fmt: skip
        outcomes = race(calls)
        assert raised(outcomes) == []
    sent = sum(1 for place in range(WORKERS) if place % 5 != 4) * 4
    said = Message.objects.filter(role="user").count()
    waits = sum(len(get_store().list_queue(thread)) for thread in threads)
    assert said + waits == sent
    assert Thread.objects.exclude(active_run_id=None).count() == len(threads)
