"""Runs sent to Celery workers: the name of a task and an id. The broker is an alarm clock, the row is the truth."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress

from celery import current_app
from kombu import Connection

from agent.runners import worker

RUN_TURN = "agent.run_turn"
EXECUTE_PROPOSAL = "agent.execute_proposal"
SEND_SECONDS = 5  # how long a broker may be silent
WAITS: Mapping[str, tuple[str, ...]] = {  # where kombu's transports would wait for ever; what a host has set stays
    "redis": ("socket_timeout", "socket_connect_timeout"),
    "amqp": ("read_timeout", "write_timeout"),
}

Message = tuple[str, str]  # the name of a task, and an id

logger = logging.getLogger("agent.runner")


class CeleryRunner:
    """Hands runs to a thread that sends them: nobody who admits one waits for a broker that is down."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[Message, None] = {}  # each once, in order
        self._sending = False
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._broker: Connection | None = None

    def start(self, run_id: str) -> None:
        self._enqueue(RUN_TURN, run_id)

    def execute(self, proposal_id: str) -> None:
        self._enqueue(EXECUTE_PROPOSAL, proposal_id)

    def _enqueue(self, task: str, subject: str) -> None:
        with self._changed:
            self._waiting[task, subject] = None
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
        while (message := self._next()) is not None:
            sent = self._sent(message)
            with self._changed:
                self._sending = False
                if not sent:
                    logger.error("%d messages could not be sent; their rows are found later", len(self._waiting) + 1)
                    self._waiting.clear()
                self._changed.notify_all()
        self._close()

    def _next(self) -> Message | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopped)
            message = next(iter(self._waiting), None)
            if message is not None:
                del self._waiting[message]  # before it is sent: whoever hands it over from now on has it sent again
                self._sending = True
            return message

    def _sent(self, message: Message) -> bool:
        """Send; a connection that the broker has closed meanwhile is made anew, once."""
        for last in (True,) if self._broker is None else (False, True):
            try:
                self._send(*message)
            except Exception as error:
                self._close()
                if last:
                    logger.warning("the broker did not take %s %s: %r", *message, error)
            else:
                return True
        return False

    def _send(self, task: str, subject: str) -> None:
        if self._broker is None:
            self._broker = connection()
        current_app.send_task(task, args=[subject], connection=self._broker, retry=False, ignore_result=True)

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
