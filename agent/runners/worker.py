"""What a Celery worker does for runs: drives them on a loop thread a process, and leaves them when it is stopped."""

from __future__ import annotations

import os
import signal as signals
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from celery import current_app
from celery.signals import worker_init, worker_process_shutdown, worker_ready, worker_shutting_down
from django.db import connections

from agent.conf import agent_settings
from agent.flows import dispatch
from agent.flows.recovery import take_over
from agent.runners.drivers import LAST_SECONDS, Drivers
from agent.starting import make_ready, refuse_wrong_start
from agent.store import get_store

FLUSH_SECONDS = 5  # for a hand-over to reach the broker before the process may end


class Bell:
    """Rung once in the main process of a worker, heard in every process of its pool: a byte that nobody takes out."""

    def __init__(self) -> None:
        self.hears, self._rings = os.pipe()
        os.set_blocking(self._rings, False)

    def ring(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._rings, b"!")


class Here:
    """The runs of this process of the pool."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.drivers = Drivers()
        if _leave is not None and _end is not None:
            self.drivers.watch(_leave.hears, self.drivers.hand_over)
            self.drivers.watch(_end.hears, self._hand_over_in_time)

    def _hand_over_in_time(self) -> None:
        soft = float(current_app.conf.worker_soft_shutdown_timeout or 0)
        self.drivers.hand_over(grace_seconds=max(0.0, soft - LAST_SECONDS - 1))


_leave: Bell | None = None  # a warm shutdown: stop at the next border
_end: Bell | None = None  # a cold one: at its end the process is killed
_here: Here | None = None


def here() -> Drivers:
    """The runs of this process, also after a fork."""
    global _here
    if _here is None or _here.pid != os.getpid():
        _here = Here()
    return _here.drivers


@worker_process_shutdown.connect(weak=False)
def stop(**_: object) -> None:
    """End the loop of this process; the next run makes a new one."""
    global _here
    ending, _here = _here, None
    if ending is not None and ending.pid == os.getpid():
        ending.drivers.stop(0)


def signal(run_id: str) -> None:
    """Tell the run's driver to look at its row, if it is in this process."""
    if _here is not None and _here.pid == os.getpid():
        _here.drivers.signal(run_id)


def work_on(run_id: str) -> None:
    """Drive a run until it is settled, parked or another's; one that is to go on elsewhere is sent again at once."""
    drivers = here()
    future = drivers.work_on(run_id)
    try:
        released = future.result()
    except BaseException:  # a time limit of the worker: whoever takes the run over counts it as a crash
        drivers.drop(run_id)
        raise
    if released:
        get_store().mark_dispatched([run_id])
        dispatch.run(run_id)
        dispatch.wait(FLUSH_SECONDS)


@worker_init.connect(weak=False)
def _prepare(**_: object) -> None:
    """Refuse a wrong start, as a serving process does, and make ready before the pool is forked."""
    global _leave, _end
    if agent_settings().runner != "celery":
        return
    try:
        refuse_wrong_start()
    except Exception as error:
        raise SystemExit(str(error)) from error  # Celery only logs what else a receiver raises
    make_ready()
    _leave, _end = Bell(), Bell()


@worker_ready.connect(weak=False)
def _begin(**_: object) -> None:
    """Take over from dead workers of this host; hear a cold shutdown when it begins.

    Celery tells of that one only when its soft part is over.
    """
    for number in (signals.SIGTERM, signals.SIGQUIT):
        before = signals.getsignal(number)
        if callable(before) and getattr(before, "__name__", "") == "worker_Cold":
            with suppress(ValueError):  # a worker that is not in the main thread is stopped by whoever started it
                signals.signal(number, _ringing(before))
    if _leave is not None:
        take_over(queued_for=60)
        dispatch.wait(FLUSH_SECONDS)
        connections.close_all()


def _ringing(before: Callable[[int, FrameType | None], object]) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        if _end is not None:
            _end.ring()
        before(number, frame)

    return handle


@worker_shutting_down.connect(weak=False)
def _hand_over(how: str, **_: object) -> None:
    bell = _leave if how == "Warm" else _end
    if bell is not None:
        bell.ring()
