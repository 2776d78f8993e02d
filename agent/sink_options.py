"""`AGENT["SINK_OPTIONS"]`: what each option of our sinks may be, and its default (spec 05 §7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings as django_settings

from agent.setting_rules import FLAG, Rule, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The options of the three sinks; each passes over those that mean nothing to it, so that sinks can be changed."""

    poll_ms: int = 250
    idle_poll_ms: int = 1000
    idle_after_ms: int = 5000
    flush_ms: int = 50
    ttl_seconds: int = 3600
    auto_purge: bool = True
    purge_batch: int = 200
    listen_database: str | None = None  # default: that of the frames
    url: str | None = None  # of the Redis server


URL_SCHEMES: Final = ("redis://", "rediss://", "unix://")
_ALIAS: Final = Rule("the name of a database in DATABASES", lambda value: value in django_settings.DATABASES)
_URL: Final = Rule(
    'the url of a Redis server such as "redis://localhost:6379/0"',
    lambda value: isinstance(value, str) and value.startswith(URL_SCHEMES),
)
RULES: Final[Mapping[str, Rule]] = {
    "poll_ms": whole(1),
    "idle_poll_ms": whole(1),
    "idle_after_ms": whole(0),
    "flush_ms": whole(0),
    "ttl_seconds": whole(0),
    "auto_purge": FLAG,
    "purge_batch": whole(1),
    "listen_database": _ALIAS,
    "url": _URL,
}
OURS: Final = frozenset({"database", "memory", "redis"})


def option_problems(sink: object, given: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the options of one of our sinks; those of a host's own sink are its own business."""
    if sink not in OURS:
        return
    for name, value in given.items():
        if name not in RULES:
            yield f"AGENT['SINK_OPTIONS'][{name!r}]: there is no such option; there are {', '.join(RULES)}."
        elif not RULES[name].fits(value):
            shown = "this" if name == "url" else f"{value!r:.80}"  # it may hold a password
            yield f"AGENT['SINK_OPTIONS'][{name!r}]: must be {RULES[name].allowed}, not {shown}."
    if sink == "redis" and "url" not in given:
        yield f"AGENT['SINK_OPTIONS']['url']: the sink 'redis' needs {_URL.allowed}."
    yield from _pace_problems(given)


def _pace_problems(given: Mapping[str, Any]) -> Iterator[str]:
    poll, idle = given.get("poll_ms", SinkOptions().poll_ms), given.get("idle_poll_ms")
    if type(poll) is int and type(idle) is int and idle < poll:
        yield f"AGENT['SINK_OPTIONS']['idle_poll_ms']: must not be below poll_ms ({poll}), not {idle}."
