"""One racing process: `python -m tests.races.racer`.

A line of its input is a list of calls, each `[name, arguments]`. It starts a thread for each call, answers `ready`,
lets all of them go at the next line, and answers the list of their outcomes: what a call gave, or `{"raised": class}`.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import django

django.setup()  # what follows reads the settings

from django.db import connections
from django.test import override_settings

from agent.domain.actor import Actor
from agent.domain.proposals import ProposalAnswer
from agent.errors import AgentError
from agent.flows import proposals, queue, threads
from agent.flows.admission import submit
from agent.flows.cancel import cancel
from agent.flows.starts import Send
from agent.providers.scripted import ScriptedProvider
from agent.store import get_store
from agent.testing import drive_run, held_runner

ALICE = Actor("alice")
PATIENCE = 60


def send(**fields: Any) -> Any:
    outcome = submit(ALICE, Send(**fields))
    waits = getattr(outcome, "message_id", None)
    return {"run": outcome.run_id, "waits": waits, "replayed": getattr(outcome, "replayed", None)}


def drive(run_id: str) -> str:
    return drive_run(run_id).status


def remove(message_id: str) -> bool:
    queue.remove(ALICE, message_id)
    return True


def interrupt(message_id: str) -> dict[str, Any]:
    moved = queue.interrupt(ALICE, message_id)
    return {"run": moved.run_id, "interrupting": moved.interrupting}


def kick(thread_id: str) -> str | None:
    return queue.kick(thread_id)


def stop(run_id: str) -> bool:
    return cancel(ALICE, run_id)


def delete(thread_id: str) -> None:
    threads.delete(ALICE, thread_id)


def approve(proposal_id: str, who: str) -> list[str | None]:
    return told(proposals.approve(Actor(who, ("lead",)), proposal_id))


def reject(proposal_id: str, who: str) -> list[str | None]:
    return told(proposals.reject(Actor(who, ("lead",)), proposal_id))


def told(answer: ProposalAnswer) -> list[str | None]:
    """The answer, and who decided as it says."""
    audit = answer.proposal and answer.proposal.audit
    return [answer.status.value, audit.actor_ref if audit else None]


def take(worker: str) -> str | None:
    store = get_store()
    taken = store.claim_next_proposal(worker, 60_000, store.clock())
    return None if taken is None else taken.id


CALLS: dict[str, Callable[..., Any]] = {
    call.__name__: call for call in (send, drive, remove, interrupt, kick, stop, delete, approve, reject, take)
}


def race(calls: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
    """Run the calls at once, on threads whose connections are open already."""
    outcomes: list[Any] = [None] * len(calls)
    line = threading.Barrier(len(calls) + 1)

    def run(place: int) -> None:
        name, arguments = calls[place]
        connections["default"].ensure_connection()
        line.wait(PATIENCE)
        try:
            outcomes[place] = CALLS[name](**arguments)
        except AgentError as error:
            outcomes[place] = {"raised": type(error).__name__}
        except Exception as error:  # the test shows what nobody expected
            outcomes[place] = {"raised": repr(error)}
        finally:
            connections.close_all()

    racers = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for racer in racers:
        racer.start()
    print("ready", flush=True)
    sys.stdin.readline()
    line.wait(PATIENCE)
    for racer in racers:
        racer.join(PATIENCE)
    return outcomes


def main() -> None:
    settings = {"PROVIDERS": {"scripted": ScriptedProvider(lambda _: "Done.")}, "MODEL_RETRIES": 0}
    with override_settings(AGENT=settings), held_runner():
        for line in sys.stdin:
            print(json.dumps(race(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
