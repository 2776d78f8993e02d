"""Where frames are kept and followed; `AGENT["SINK"]` names it."""

from __future__ import annotations

import os
import threading

from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from agent.conf import agent_settings
from agent.sinks.base import FrameSink
from agent.store import get_store

SINKS = {
    "database": "agent.sinks.database.DatabaseSink",
    "memory": "agent.sinks.memory.MemorySink",
    "redis": "agent.sinks.redis.RedisSink",
}

_sink: FrameSink | None = None
_lock = threading.Lock()


def get_sink() -> FrameSink:
    """The sink of this process, made at the first use."""
    global _sink
    if _sink is None:
        with _lock:
            if _sink is None:
                settings = agent_settings()
                made: FrameSink = import_string(SINKS.get(settings.sink, settings.sink))(
                    get_store(), **settings.sink_options
                )
                _sink = made
    return _sink


def stop_sink() -> None:
    """Let the followers of this process go, and what listens for them; the next use makes a new sink."""
    global _sink
    with _lock:
        stopping, _sink = _sink, None
    stop = getattr(stopping, "stop", None)
    if stop is not None:
        stop()


def _forget(*, setting: str, **_: object) -> None:
    if setting == "AGENT":
        stop_sink()


def _forget_in_fork() -> None:
    """A fork has the sink but not its threads and connections."""
    global _sink, _lock
    _sink, _lock = None, threading.Lock()


setting_changed.connect(_forget)
os.register_at_fork(after_in_child=_forget_in_fork)
