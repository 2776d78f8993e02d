"""Runs sent to Celery workers: the name of a task and an id. The broker is an alarm clock, the row is the truth."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress

from celery import current_app
from kombu import Connection

from agent.runners import worker

TASK = "agent.run_turn"
SEND_SECONDS = 5  # how long a broker may be silent
WAITS: Mapping[str, tuple[str, ...]] = {  # where kombu's transports would wait for ever; what a host has set stays
    "redis": ("socket_timeout", "socket_connect_timeout"),
    "amqp": ("read_timeout", "write_timeout"),
}

logger = logging.getLogger("agent.runner")


class CeleryRunner:
    """Hands runs to a thread that sends them: nobody who admits one waits for a broker that is down."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, None] = {}  # run ids, each once, in order
        self._sending = False
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._broker: Connection | None = None

    def start(self, run_id: str) -> None:
        with self._changed:
            self._waiting[run_id] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="agent-sender", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def signal(self, run_id: str) -> None:
        """Whoever drives the run looks at its row with each heartbeat; at once when that is this process."""
        worker.signal(run_id)

    def is_alive(self, run_id: str) -> bool | None:
        return None

    def wait(self, seconds: float) -> bool:
        """Wait until everything is sent; False when that took longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._sending, timeout=seconds)

    def stop(self, grace_seconds: float) -> None:
        self.wait(min(grace_seconds, SEND_SECONDS))
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def _serve(self) -> None:
        while (run_id := self._next()) is not None:
            sent = self._sent(run_id)
            with self._changed:
                self._sending = False
                if not sent:
                    logger.error("%d runs could not be sent; recovery sends them again", len(self._waiting) + 1)
                    self._waiting.clear()
                self._changed.notify_all()
        self._close()

    def _next(self) -> str | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopped)
            run_id = next(iter(self._waiting), None)
            if run_id is not None:
                del self._waiting[run_id]  # before it is sent: whoever hands it over from now on has it sent again
                self._sending = True
            return run_id

    def _sent(self, run_id: str) -> bool:
        """Send; a connection that the broker has closed meanwhile is made anew, once."""
        for last in (True,) if self._broker is None else (False, True):
            try:
                self._send(run_id)
            except Exception as error:
                self._close()
                if last:
                    logger.warning("the broker did not take run %s: %r", run_id, error)
            else:
                return True
        return False

    def _send(self, run_id: str) -> None:
        if self._broker is None:
            self._broker = connection()
        current_app.send_task(TASK, args=[run_id], connection=self._broker, retry=False, ignore_result=True)

    def _close(self) -> None:
        broken, self._broker = self._broker, None
        if broken is not None:
            with suppress(Exception):
                broken.release()


def connection() -> Connection:
    """A connection that gives up: kombu's own would try for ever."""
    broker: Connection = current_app.connection_for_write(connect_timeout=SEND_SECONDS)
    waits = dict.fromkeys(WAITS.get(broker.transport.driver_type, ()), SEND_SECONDS)
    bounded = {"max_retries": 0, "connect_retries_timeout": SEND_SECONDS}
    broker.transport_options = waits | (broker.transport_options or {}) | bounded
    return broker
