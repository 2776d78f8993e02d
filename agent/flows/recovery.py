"""Finding runs that nobody works on, and handing them to a runner again (spec 03 §8)."""

from __future__ import annotations

from agent.flows import dispatch
from agent.store import get_store

BATCH = 100


def recover(*, queued_for: int = 60) -> int:
    """Re-dispatch every lapsed run, oldest first; how many. Idempotent: the lease decides who works."""
    store, found = get_store(), 0
    if not {"runs", "journal"} <= store.capabilities:
        return 0
    while lapsed := store.lapsed_runs(store.clock(), BATCH, queued_for=queued_for):
        run_ids = [run.id for run in lapsed]
        store.mark_dispatched(run_ids)
        for run_id in run_ids:
            dispatch.run(run_id)
        found += len(run_ids)
        if len(run_ids) < BATCH:
            break
    return found
