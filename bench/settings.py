"""Settings of a small host site: the database comes from DATABASE_URL, the store from BENCH_STORE."""

import json
import os
from typing import Any

from project.database import database

IN_MEMORY = os.environ.get("BENCH_STORE") == "memory"

DATABASES = {"default": database(os.environ.get("DATABASE_URL", "sqlite:///:memory:"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SECRET_KEY = "only-for-benches"
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "agent",
    "bench",
]
if os.environ.get("BENCH_CONSOLE"):
    INSTALLED_APPS.append("governance")
USE_TZ = True

AGENT: dict[str, Any] = {
    "RUNNER": "bench.runner.TimedRunner",
    "PROVIDERS": {"bench": "bench.agents.provider"},
}
CELERY_BROKER_URL = os.environ.get("BENCH_BROKER", "")
if CELERY_BROKER_URL:
    AGENT |= {"RUNNER": "celery", "SINK_OPTIONS": {"poll_ms": int(os.environ.get("BENCH_POLL_MS", "250"))}}
if IN_MEMORY:
    AGENT |= {"STORE": "agent.testing.InMemoryStore", "SINK": "memory"}
AGENT |= json.loads(os.environ.get("BENCH_AGENT", "{}"))
