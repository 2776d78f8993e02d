"""What runs that wait for a person cost the process that parked them: nothing. A thousand: `bench.parked`."""

from __future__ import annotations

import gc
import threading
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from agent.db import DB_THREADS
from agent.flows import approvals, dispatch
from agent.runners.inline import InlineRunner
from tests.flows.acting import Acting, calls_of, cancel_call
from tests.flows.conftest import ALICE, Site

PATIENCE = 30


def parked(desk: Site) -> str:
    """One more run that waits, and that nobody drives."""
    run_id = desk.send().run_id
    assert dispatch.wait(PATIENCE)
    assert getattr(desk.store.get_run(run_id), "status", None) == "waiting"
    return run_id


def held() -> tuple[int, int]:
    """Threads of this process, and its open connections on any of them."""
    # by its type: `isinstance` would wake lazy objects that other tests have left
    found = [one for one in gc.get_objects() if issubclass(type(one), BaseDatabaseWrapper)]
    return threading.active_count(), sum(one.connection is not None for one in found)


def test_runs_that_wait_hold_no_worker_no_thread_and_no_connection(site: Any) -> None:
    acting = Acting(site)
    acting.declare()
    desk = acting.site(cancel_call())
    inline = InlineRunner()
    before = dispatch.use(inline)
    try:
        threads, connections = held()
        run_ids = [parked(desk) for _ in range(30)]
        now = held()  # a pool of threads may have grown, up to its size, whatever waits
        assert not any(inline.drives(run_id) for run_id in run_ids)
        assert now[0] - threads <= DB_THREADS + 2 < len(run_ids)
        assert now[1] - connections <= DB_THREADS

        run = desk.store.get_run(run_ids[0])
        assert run is not None
        (call,) = calls_of(desk, run.thread_id)
        approvals.approve(ALICE, call.id)
        assert dispatch.wait(PATIENCE)
        assert getattr(desk.store.get_run(run.id), "status", None) == "completed"
    finally:
        dispatch.use(before)
        inline.stop(0)
