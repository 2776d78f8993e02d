"""Finding runs that nobody works on, and handing them to a runner again (spec 03 §8)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta

from agent.conf import agent_settings
from agent.domain import frames
from agent.domain.runs import Run
from agent.domain.states import RunStatus
from agent.errors import GivenUp
from agent.flows import approvals, dispatch, personal, queue, retelling, upkeep
from agent.flows.failures import told_error
from agent.flows.handing import current_frame
from agent.flows.owners import is_gone, this_process
from agent.flows.settlement import Leftovers, close_stream, settle_failed
from agent.flows.takeover import count_crash, shown_of
from agent.sinks import get_sink
from agent.store import get_store

BATCH = 100
STILL_TELLING = timedelta(seconds=10)  # a worker that has just settled its run may be storing the last frames
LATELY = timedelta(minutes=10)
BEFORE_A_START = timedelta(hours=1)

logger = logging.getLogger("agent.recovery")


def recover(*, queued_for: int = 60, settled: timedelta = LATELY) -> int:
    """Re-dispatch every lapsed run, expire what nobody has decided in time, end what was left open; how many runs.

    Idempotent, and safe in several processes at once: the lease decides who works.
    """
    approvals.expire_due()
    found = redispatch(queued_for=queued_for)
    queue.kick_idle(BATCH)
    personal.go_on(BATCH)
    _end_streams(settled)
    upkeep.purge_keys()
    return found


def take_over(*, queued_for: int = 0) -> int:
    """As a process starts: queued runs, and without a wait those whose process on this host is gone."""
    store = get_store()
    if "runs" in store.capabilities:
        store.lapse_leases([owner for owner in store.lease_owners() if is_gone(owner)])
    return recover(queued_for=queued_for, settled=BEFORE_A_START)


def redispatch(*, queued_for: int = 60) -> int:
    """Hand lapsed runs over again, oldest first; one that gets no further is given up. How many."""
    store, found = get_store(), 0
    if not {"runs", "journal"} <= store.capabilities:
        return 0
    most = agent_settings().run_max_recoveries
    for batch in _lapsed(queued_for):
        store.mark_dispatched([run.id for run in batch])
        for run in batch:
            if run.recoveries < most:
                dispatch.run(run.id)
            else:
                give_up(run)
        found += len(batch)
    return found


def give_up(run: Run) -> bool:
    """Fail a run that was taken up too often without getting on; False when a worker was faster."""
    store, error = get_store(), GivenUp()
    lease = store.claim_run(run.id, this_process(), agent_settings().run_lease_seconds)
    if lease is None:
        return False
    logger.error("run %s was taken up %d times without a new step", run.id, run.recoveries)
    count_crash(store, run, store.steps(run.id), seen=shown_of(run))
    settled = settle_failed(run, error, lease=lease, left=Leftovers())
    if settled is not None:
        close_stream(run, settled)
    return settled is not None


def _lapsed(queued_for: int) -> Iterator[list[Run]]:
    """Batches of lost runs until none is left that was lost when we began."""
    store = get_store()
    began, seen = store.clock(), set[str]()
    while fresh := [run for run in store.lapsed_runs(began, BATCH, queued_for=queued_for) if run.id not in seen]:
        seen |= {run.id for run in fresh}
        yield fresh


def _end_streams(settled: timedelta) -> None:
    """End the streams of runs whose worker was gone between the settlement and the last frames."""
    unended, now = getattr(get_sink(), "unended", None), get_store().clock()
    if unended is None:
        return
    while run_ids := unended(now - settled, now - STILL_TELLING, BATCH):
        for run_id in run_ids:
            end_stream(run_id)
        if len(run_ids) < BATCH:
            return


def end_stream(run_id: str) -> None:
    """Tell the rest of a settled run's stream, and its end; nothing when it has ended."""
    store = get_store()
    opened = store.open_run(run_id)
    if opened is None:
        return
    run, rest = opened.run, retelling.untold(opened.steps, shown_of(opened.run))
    if run.status != RunStatus.COMPLETED and (waiting := current_frame(store, run.thread_id)) is not None:
        rest.append(waiting)  # of such an end the journal says nothing
    rest += [frames.cancelled()] if run.status == RunStatus.CANCELLED else []
    error = told_error(run) if run.status == RunStatus.FAILED else None
    get_sink().finish(run.stream_run_id, [frames.encode(frame) for frame in rest], error)
