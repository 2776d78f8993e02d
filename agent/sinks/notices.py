"""Notices that something of a conversation has changed, for whoever has it open. Hints: one may be lost or doubled.

Inside a process they are handed on at once; between processes they travel over the channel layer, when a shared one
is configured, to the group of the thread.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Final, Literal

from agent.domain.ids import new_id
from agent.sinks.broadcast import post, shared_layer
from agent.sinks.listener import Listener, group_of

Reason = Literal["queue", "outcome", "title", "run-started", "run-settled"]
Tell = Callable[[str, str], None]  # thread id and reason; called on any thread, must not wait

TYPE: Final = "agent.thread"
JOIN_SECONDS = 2  # how long a watcher waits until other processes are heard

log = logging.getLogger("agent.notices")


def thread_changed(thread_id: str, reason: Reason) -> None:
    """Tell those who watch the thread; called after the commit that makes it true. Never waits and never raises."""
    _office.hand_on(thread_id, reason)
    post(group_of(thread_id), {"type": TYPE, "threadId": thread_id, "reason": reason, "from": _office.process})


async def watch(thread_id: str, tell: Tell) -> None:
    """Call `tell` at each notice of the thread that is given from now on, until `unwatch`."""
    listener = _office.add(thread_id, tell)
    if listener is not None and not await listener.joined(thread_id, JOIN_SECONDS):
        log.warning("notices of other processes are not heard yet")


def unwatch(thread_id: str, tell: Tell) -> None:
    """Stop calling it; nothing when it was not called."""
    _office.remove(thread_id, tell)


class _Office:
    """Who watches what in this process, and the listener that hears of it from the others."""

    def __init__(self) -> None:
        self.process = new_id()
        self._lock = threading.Lock()
        self._watchers: dict[str, set[Tell]] = {}
        self._listener: Listener | None = None

    def hand_on(self, thread_id: str, reason: str) -> None:
        if thread_id not in self._watchers:
            return
        with self._lock:
            watchers = tuple(self._watchers.get(thread_id, ()))
        for tell in watchers:
            try:
                tell(thread_id, reason)
            except Exception:
                log.exception("a notice of thread %s was not taken", thread_id)

    def hear(self, message: dict[str, str]) -> None:
        """A notice from the layer; one of our own has been handed on already."""
        if message["from"] != self.process:
            self.hand_on(message["threadId"], message["reason"])

    def threads(self) -> set[str]:
        with self._lock:
            return set(self._watchers)

    def add(self, thread_id: str, tell: Tell) -> Listener | None:
        shared = shared_layer() is not None
        with self._lock:
            self._watchers.setdefault(thread_id, set()).add(tell)
            if self._listener is None and shared:
                self._listener = Listener(self.threads, self.hear)
            return self._listener

    def remove(self, thread_id: str, tell: Tell) -> None:
        with self._lock:
            watchers = self._watchers.get(thread_id, set())
            watchers.discard(tell)
            if not watchers:
                self._watchers.pop(thread_id, None)
            listener = self._listener
        if listener is not None:
            listener.look()

    def close(self) -> None:
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            listener.stop()


def stop_listening() -> None:
    """Leave the channel layer; the next watcher joins it anew."""
    _office.close()


def _forget() -> None:
    """A fork has the watchers but neither their sockets nor the listener's thread."""
    global _office
    _office = _Office()


_office = _Office()
os.register_at_fork(after_in_child=_forget)
