"""The tasks of Celery: they carry ids, may run twice or never, and are never tried again by the broker."""

from __future__ import annotations

from asgiref.sync import async_to_sync
from celery import shared_task

from agent.flows import execution, recovery, upkeep
from agent.runners import worker


@shared_task(name="agent.run_turn", acks_late=True, ignore_result=True)
def run_turn(run_id: str) -> None:
    """Work on a run until nobody has to; a second delivery finds its lease live."""
    worker.work_on(run_id)


@shared_task(name="agent.recover", acks_late=True, ignore_result=True)
def recover() -> None:
    """Hand runs that nobody works on to the runner again: every 30 s."""
    recovery.recover()


@shared_task(name="agent.purge", acks_late=True, ignore_result=True)
def purge() -> None:
    """Remove what is past its time: every 10 minutes."""
    upkeep.purge()


@shared_task(name="agent.execute_proposal", acks_late=True, ignore_result=True)
def execute_proposal(proposal_id: str) -> None:
    """Carry out what was approved; of two deliveries the row lets one through."""
    async_to_sync(execution.execute)(proposal_id)


@shared_task(name="agent.sweep_proposals", acks_late=True, ignore_result=True)
def sweep_proposals() -> None:
    """Expire, execute what was lost, tell outcomes: every 15 s."""
    async_to_sync(execution.sweep)()
