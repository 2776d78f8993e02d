"""News for other processes: to groups of the channel layer, behind the back of whoever sends.

A layer in memory is of one process, so nothing is sent to it. News are no records: where the layer is gone or too
slow, they are dropped and the log says so.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from channels import DEFAULT_CHANNEL_LAYER
from channels.layers import BaseChannelLayer, InMemoryChannelLayer, channel_layers, get_channel_layer

from agent.signals import Event

GROUP: Final = "agent.events"
TYPE: Final = "agent.event"  # a consumer of the group has a method `agent_event`
WAITING = 1_000
SECONDS = 5  # for one message

Message = Mapping[str, Any]  # with a `type`, as a channel layer has it

log = logging.getLogger("agent.signals")


def shared_layer() -> BaseChannelLayer | None:
    """The channel layer, when other processes are reached by it."""
    layer = get_channel_layer()
    return None if layer is None or isinstance(layer, InMemoryChannelLayer) else layer


def own_layer() -> BaseChannelLayer:
    """The same for one listener alone: `channels_redis.core` is of no use to two loops of a process that share it."""
    return channel_layers.make_backend(DEFAULT_CHANNEL_LAYER)


def broadcast(event: Event) -> None:
    """Tell the group `agent.events`."""
    post(GROUP, {"type": TYPE, **event.to_wire()})


def post(group: str, message: Message) -> None:
    """Hand a message to the thread that sends; never waits and never raises."""
    try:
        if shared_layer() is not None:
            _sender().put(group, message)
    except Exception:
        log.exception("%s could not be sent to other processes", message["type"])


class _Sender:
    """A thread with a loop of its own, because a layer keeps its connections by loop."""

    def __init__(self) -> None:
        self._messages: queue.Queue[tuple[str, Message] | None] = queue.Queue(WAITING)
        self._lost = 0
        self._thread = threading.Thread(target=self._serve, name="agent-events", daemon=True)
        self._thread.start()

    def put(self, group: str, message: Message) -> None:
        try:
            self._messages.put_nowait((group, message))
        except queue.Full:
            self._lose()

    def stop(self) -> None:
        with suppress(queue.Full):
            self._messages.put(None, timeout=SECONDS)
            self._thread.join(timeout=SECONDS)

    def _serve(self) -> None:
        with asyncio.Runner() as runner:
            while (waiting := self._messages.get()) is not None:
                try:
                    runner.run(asyncio.wait_for(_send(*waiting), SECONDS))
                    self._lost = 0
                except Exception:
                    self._lose(exc_info=True)

    def _lose(self, *, exc_info: bool = False) -> None:
        """Drop a message; the log is told of the first of a row, not of each."""
        self._lost += 1
        if self._lost == 1:
            log.warning("events do not reach other processes at the moment", exc_info=exc_info)


async def _send(group: str, message: Message) -> None:
    layer = shared_layer()
    if layer is not None:
        await layer.group_send(group, dict(message))


_current: _Sender | None = None
_lock = threading.Lock()


def _sender() -> _Sender:
    global _current
    with _lock:
        if _current is None:
            _current = _Sender()
        return _current


def stop_broadcast() -> None:
    """Send what waits, and end the thread; the next message makes a new one."""
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
