"""What a serving process starts and stops: `application = with_agent(get_asgi_application())`."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connections, router
from django.db.migrations.executor import MigrationExecutor

from agent.conf import agent_settings, setting_problems
from agent.flows import dispatch, upkeep
from agent.flows.recovery import recover
from agent.models import Thread
from agent.registry import provider_named

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]  # scope, receive, send: each framework types them its own way

OURS = ("agent", "governance")
RECOVER_SECONDS = 30
PURGE_EVERY = 20  # looks: ten minutes

logger = logging.getLogger("agent.asgi")


def with_agent(application: Application) -> Application:
    """Wrap the host's ASGI application: the process drives runs, recovers lost ones, and hands its own over at its end.

    Raises `ImproperlyConfigured` when settings of ours are wrong (agent.E010) or migrations not applied (agent.E001).
    """
    if problems := setting_problems():
        raise ImproperlyConfigured("agent.E010: " + " ".join(problems))
    with ThreadPoolExecutor(1) as own_thread:  # a server may import us inside its event loop
        own_thread.submit(refuse_unapplied_migrations).result()
    _start()
    os.register_at_fork(after_in_child=_start)

    async def wrapped(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        else:
            await application(scope, receive, send)

    return wrapped


def refuse_unapplied_migrations() -> None:
    """Raise `ImproperlyConfigured` unless every migration of our apps is applied."""
    connection = connections[router.db_for_write(Thread)]
    try:
        executor = MigrationExecutor(connection)
        targets = [node for node in executor.loader.graph.leaf_nodes() if node[0] in OURS]
        missing = [f"{migration.app_label}.{migration.name}" for migration, _ in executor.migration_plan(targets)]
    finally:
        connection.close()
    if missing:
        raise ImproperlyConfigured(f"agent.E001: run `manage.py migrate` first; not applied: {', '.join(missing)}")


def _start() -> None:
    stopped = threading.Event()
    threading.Thread(target=_preload, name="agent-preload", daemon=True).start()
    threading.Thread(target=_keep_recovering, args=(stopped,), name="agent-recovery", daemon=True).start()

    def stop() -> None:
        stopped.set()
        dispatch.stop()

    atexit.register(stop)


def _preload() -> None:
    """Import what providers import at their first call, which takes seconds, before somebody waits for it."""
    for name in agent_settings().providers:
        preload = getattr(provider_named(name), "preload", None)
        if preload is not None:
            try:
                preload()
            except Exception:
                logger.exception("provider %s could not be made ready", name)


def _keep_recovering(stopped: threading.Event) -> None:
    """Queued runs at once when the process starts, then whatever lapsed, every half minute; a purge now and then."""
    for look in count():
        try:
            recover(queued_for=60 if look else 0)
            if look % PURGE_EVERY == 0:
                upkeep.purge()
        except Exception:
            logger.exception("runs could not be recovered; trying again in %s s", RECOVER_SECONDS)
        finally:
            connections.close_all()
        if stopped.wait(RECOVER_SECONDS):
            return


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
