"""The settings of the small site when it is served over HTTP."""

import os

from bench.settings import *  # noqa: F403
from bench.settings import AGENT, DATABASES, INSTALLED_APPS

ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "bench.http_urls"
INSTALLED_APPS = [*INSTALLED_APPS, "django.contrib.sessions", "rest_framework", "drf_spectacular"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
if "BENCH_POOL" in os.environ:
    DATABASES["default"]["OPTIONS"] = {**DATABASES["default"].get("OPTIONS", {}), "pool": {"max_size": 40}}
AGENT = {**AGENT, "RUNNER": "inline", "DEFAULT_AGENT": "bench"}
