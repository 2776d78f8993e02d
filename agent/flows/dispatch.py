"""Handing over after commit: ids only. A lost or doubled hand-over changes nothing, the row decides."""

from __future__ import annotations

import logging
import os
import threading
from typing import Protocol

from django.utils.module_loading import import_string

from agent.conf import agent_settings


class Runner(Protocol):
    """Where runs are driven (spec 03 §8)."""

    def start(self, run_id: str) -> None:
        """Take the run up, now or when there is room."""

    def signal(self, run_id: str) -> None:
        """A decision or a cancel is there for the run."""

    def execute(self, proposal_id: str) -> None:
        """An approved proposal waits for a worker."""

    def is_alive(self, run_id: str) -> bool | None:
        """Whether the run is being driven; None = cannot tell, which counts as alive."""

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is being driven here; False when that took longer."""

    def stop(self, grace_seconds: float) -> None:
        """Stop claiming; give running loops that long to reach a border, then release their runs."""


logger = logging.getLogger("agent.dispatch")

RUNNERS = {"inline": "agent.runners.inline.InlineRunner", "celery": "agent.runners.celery.CeleryRunner"}
PERSONAL = "agent.flows.personal.advance"  # by name: what it starts tells of itself through here

_runner: Runner | None = None
_over = False  # the process ends: it takes no run up any more
_lock = threading.Lock()


def _after_fork() -> None:
    """A forked process has the runner's object and its locks, and none of its threads: it makes its own."""
    global _runner, _lock, _over
    _runner, _lock, _over = None, threading.Lock(), False


os.register_at_fork(after_in_child=_after_fork)


def runner() -> Runner:
    """The runner of this process, made at the first use."""
    global _runner
    with _lock:
        if _runner is None:
            name = agent_settings().runner
            _runner = import_string(RUNNERS.get(name, name))()
        return _runner


def use(other: Runner | None) -> Runner | None:
    """Put another runner in this process's place (tests, a host's own); the one before is handed back, not stopped."""
    global _runner
    with _lock:
        before, _runner = _runner, other
    return before


def wait(seconds: float) -> bool:
    """Wait until this process drives no run; False when that took longer."""
    return _runner.wait(seconds) if _runner is not None else True


def stop(grace_seconds: float = 10, *, for_good: bool = False) -> None:
    """Stop this process's runner, if it has one; the next hand-over makes a new one, unless it is `for_good`."""
    global _runner, _over
    with _lock:
        stopping, _runner = _runner, None
        _over |= for_good
    if stopping is not None:
        stopping.stop(grace_seconds)


def run(run_id: str) -> None:
    """Hand a run over; a runner that cannot take it loses nothing, recovery finds the row."""
    if _over:
        return
    try:
        runner().start(run_id)
    except Exception:
        logger.exception("run %s could not be handed over; recovery will", run_id)


def is_alive(run_id: str) -> bool:
    """Whether the run may still be driven somewhere; a runner that cannot tell does not say no."""
    if _over:
        return True
    try:
        ask = getattr(runner(), "is_alive", None)
        return ask is None or ask(run_id) is not False
    except Exception:
        logger.exception("the runner could not be asked about run %s", run_id)
        return True


def proposal(proposal_id: str) -> None:
    """Hand an approved proposal over; a lost hand-over is found by the sweep."""
    if _over:
        return
    try:
        runner().execute(proposal_id)
    except Exception:
        logger.exception("proposal %s could not be handed over; the sweep will", proposal_id)


def personal(conversation_id: str) -> None:
    """Let a conversation of a person's own agent go on; a lost hand-over is found by recovery."""
    if _over:
        return
    try:
        import_string(PERSONAL)(conversation_id)
    except Exception:
        logger.exception("conversation %s could not go on; recovery will", conversation_id)


def signal(run_id: str) -> None:
    """Tell whoever drives the run to look at its row; else it does at its next heartbeat."""
    if _over:
        return
    try:
        runner().signal(run_id)
    except Exception:
        logger.exception("the worker of run %s could not be told", run_id)
