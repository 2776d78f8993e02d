"""The test site's settings for a process of its own."""

import os
from typing import Any

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, INSTALLED_APPS, MIDDLEWARE

DEBUG = False
INSTALLED_APPS = [*INSTALLED_APPS, "tests.edges.live"]
MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *MIDDLEWARE]  # it must hold no frame back
ASGI_APPLICATION = "tests.edges.live.asgi.application"
AGENT = {
    "PROVIDERS": {"scripted": "tests.edges.live.model.provider"},
    "DEFAULT_AGENT": "desk",
    "MODELS": [{"id": "small", "label": "Small", "provider": "scripted", "default": True}],
    "SERVE_SCHEMA": True,
    "ACTOR_RESOLVER": "tests.edges.live.who.SlowDirectory",
}
if "LIVE_POOL" in os.environ:
    DATABASES["default"]["OPTIONS"] |= {"pool": {"max_size": 20}}
if "LIVE_LAYER" in os.environ:  # one of several processes, which look of themselves once a minute only
    host = {"address": os.environ["LIVE_LAYER"], "socket_timeout": None}
    shared: dict[str, Any] = {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [host]}}
    CHANNEL_LAYERS = {"default": shared}
    AGENT["SINK_OPTIONS"] = {"poll_ms": 60_000, "idle_poll_ms": 60_000}
