"""The run that holds a thread: alive, or dead and replaced (spec 06 §1)."""

from __future__ import annotations

from agent.conf import agent_settings
from agent.domain.queue import ThreadHold
from agent.domain.states import OPEN_RUN, RunStatus
from agent.flows import dispatch
from agent.flows.settlement import bury
from agent.flows.takeover import count_crash, shown_of
from agent.store.base import AgentStore


def is_dead(store: AgentStore, run_id: str) -> bool:
    """Whether nobody will settle the run: it is over or missing, or no worker has it and its recoveries are used up."""
    run = store.get_run(run_id)
    if run is None or run.status not in OPEN_RUN:
        return True
    if run.status != RunStatus.RUNNING or run.lease_expires_at is None or run.lease_expires_at > store.clock():
        return False
    return run.recoveries >= agent_settings().run_max_recoveries and not dispatch.is_alive(run_id)


def is_idle(store: AgentStore, holder: str | None) -> bool:
    return holder is None or is_dead(store, holder)


def freed(store: AgentStore, hold: ThreadHold) -> bool:
    """Whether a locked thread may be claimed in the place of its holder; one that is dead is settled first."""
    if not is_idle(store, hold.run_id):
        return False
    run = None if hold.run_id is None else store.get_run(hold.run_id)
    if run is not None and run.status in OPEN_RUN:
        count_crash(store, run, store.steps(run.id), seen=shown_of(run))
        bury(store, run)
    return True
