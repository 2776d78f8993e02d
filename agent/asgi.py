"""What a serving process starts and stops: `application = with_agent(get_asgi_application())`."""

from __future__ import annotations

import asyncio
import atexit
import logging
import math
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.db import connections

from agent.conf import agent_settings
from agent.db import close_unusable
from agent.flows import dispatch, upkeep
from agent.flows.outcomes import admit_due
from agent.flows.proposals import expire_due
from agent.flows.recovery import recover, redispatch, take_over
from agent.registry import registry
from agent.runners import proposals
from agent.starting import make_ready, refuse_wrong_start

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]  # scope, receive, send: each framework types them its own way

RECOVER_SECONDS = 30
PURGE_SECONDS = 600
OTHERS_SECONDS = 5
EVERY: Mapping[Callable[[], object], float] = {recover: RECOVER_SECONDS, upkeep.purge: PURGE_SECONDS}

# Before the interpreter waits for threads: one that a model call of ours holds would keep it from ever handing over.
at_exit: Callable[[Callable[[], object]], object] = getattr(threading, "_register_atexit", atexit.register)

logger = logging.getLogger("agent.asgi")


def with_agent(application: Application) -> Application:
    """Wrap the host's ASGI application: the process drives runs, recovers lost ones, and hands its own over at its end.

    Raises `ImproperlyConfigured` when settings of ours are wrong (agent.E010) or migrations not applied (agent.E001).
    """
    refuse_wrong_start()
    _start()
    os.register_at_fork(after_in_child=_start)

    async def wrapped(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        else:
            await application(scope, receive, send)

    return wrapped


class _Process:
    """What this process does beside serving, until it stops."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        if agent_settings().runner != "celery":
            threading.Thread(target=make_ready, name="agent-preload", daemon=True).start()
        threading.Thread(target=keep_up, args=(self._stopped,), name="agent-upkeep", daemon=True).start()
        threading.Thread(target=keep_others, args=(self._stopped,), name="agent-others", daemon=True).start()
        at_exit(self.stop)

    def stop(self) -> None:
        """Hand the runs of this process over; it takes no other one up."""
        self._stopped.set()
        proposals.stop()
        dispatch.stop(for_good=True)


def keep_up(stopped: threading.Event) -> None:
    """What nobody works on is taken up at once; then the periodic tasks, where no beat does them, until stopped."""
    settings, last = agent_settings(), dict[Callable[[], object], float]()
    if _is_embedded():
        proposals.start()
    _attempt(recover if settings.runner == "celery" else take_over)
    while _is_embedded() and not stopped.wait(settings.proposal_poll_seconds):
        due = _due(EVERY, last)
        done = [_attempt(call) for call in [*(due or [redispatch]), *tended()]]
        if not all(done):
            stopped.wait(RECOVER_SECONDS)  # the database is down: no line a second in the log
    connections.close_all()


def tended() -> list[Callable[[], object]]:
    """What is done for proposals at each look, where something is declared that makes them."""
    if not registry.makes_proposals(agent_settings().action_approval_mode):
        return []
    return [expire_due, admit_due, proposals.wake]


def keep_others(stopped: threading.Event) -> None:
    """The periodic work of other apps, which may take minutes: it never holds a lost run up."""
    last = dict[Callable[[], object], float]()
    while _is_embedded() and not stopped.wait(OTHERS_SECONDS):
        for call in _due(upkeep.others, last):
            _attempt(call)
        connections.close_all()


def _is_embedded() -> bool:
    return agent_settings().embedded_worker and agent_settings().runner != "celery"


def _due(
    every: Mapping[Callable[[], object], float], last: dict[Callable[[], object], float]
) -> list[Callable[[], object]]:
    """The calls whose time has come; it counts from now."""
    now = time.monotonic()
    due = [call for call, seconds in every.items() if now - last.get(call, -math.inf) >= seconds]
    last |= dict.fromkeys(due, now)
    return due


_process: _Process | None = None


def _start() -> None:
    global _process
    _process = _Process()


def _attempt(call: Callable[[], object]) -> bool:
    try:
        close_unusable()
        call()
    except Exception:
        logger.exception("%s failed; it is tried again", call.__name__)
        connections.close_all()
        return False
    return True


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            if _process is not None:
                await asyncio.to_thread(_process.stop)
            await send({"type": "lifespan.shutdown.complete"})
            return
