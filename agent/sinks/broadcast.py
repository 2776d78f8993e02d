"""Events between processes: to the group `agent.events` of the channel layer, behind the back of whoever sends.

A layer in memory is of one process, so nothing is sent to it. Events are news, not records: where the layer is gone
or too slow, they are dropped and the log says so.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
from contextlib import suppress
from typing import Final

from channels.layers import BaseChannelLayer, InMemoryChannelLayer, get_channel_layer

from agent.signals import Event

GROUP: Final = "agent.events"
TYPE: Final = "agent.event"  # a consumer of the group has a method `agent_event`
WAITING = 1_000
SECONDS = 5  # for one event

log = logging.getLogger("agent.signals")


def shared_layer() -> BaseChannelLayer | None:
    """The channel layer, when other processes are reached by it."""
    layer = get_channel_layer()
    return None if layer is None or isinstance(layer, InMemoryChannelLayer) else layer


def broadcast(event: Event) -> None:
    """Hand the event to the thread that sends; never waits and never raises."""
    try:
        if shared_layer() is not None:
            _sender().put(event)
    except Exception:
        log.exception("event %s could not be sent to other processes", event.event)


class _Sender:
    """A thread with a loop of its own, because a layer keeps its connections by loop."""

    def __init__(self) -> None:
        self._events: queue.Queue[Event | None] = queue.Queue(WAITING)
        self._lost = 0
        self._thread = threading.Thread(target=self._serve, name="agent-events", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        try:
            self._events.put_nowait(event)
        except queue.Full:
            self._lose()

    def stop(self) -> None:
        with suppress(queue.Full):
            self._events.put(None, timeout=SECONDS)
            self._thread.join(timeout=SECONDS)

    def _serve(self) -> None:
        with asyncio.Runner() as runner:
            while (event := self._events.get()) is not None:
                try:
                    runner.run(asyncio.wait_for(_send(event), SECONDS))
                    self._lost = 0
                except Exception:
                    self._lose(exc_info=True)

    def _lose(self, *, exc_info: bool = False) -> None:
        """Drop an event; the log is told of the first of a row, not of each."""
        self._lost += 1
        if self._lost == 1:
            log.warning("events do not reach other processes at the moment", exc_info=exc_info)


async def _send(event: Event) -> None:
    layer = shared_layer()
    if layer is not None:
        await layer.group_send(GROUP, {"type": TYPE, **event.to_wire()})


_current: _Sender | None = None
_lock = threading.Lock()


def _sender() -> _Sender:
    global _current
    with _lock:
        if _current is None:
            _current = _Sender()
        return _current


def stop_broadcast() -> None:
    """Send what waits, and end the thread; the next event makes a new one."""
    global _current
    with _lock:
        stopping, _current = _current, None
    if stopping is not None:
        stopping.stop()


def _forget() -> None:
    """A fork has the queue but not the thread."""
    global _lock, _current
    _lock, _current = threading.Lock(), None


os.register_at_fork(after_in_child=_forget)
