"""Where frames are kept and followed; `AGENT["SINK"]` names it."""

from __future__ import annotations

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


def forget_sink(*, setting: str = "AGENT", **_: object) -> None:
    """Make a new sink at the next use: its settings have changed."""
    global _sink
    if setting == "AGENT":
        _sink = None


setting_changed.connect(forget_sink)
