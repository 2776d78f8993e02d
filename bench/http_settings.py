"""The settings of the small site when it is served over HTTP."""

from bench.settings import *  # noqa: F403
from bench.settings import AGENT, INSTALLED_APPS

ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "bench.http_urls"
INSTALLED_APPS = [*INSTALLED_APPS, "django.contrib.sessions", "rest_framework", "drf_spectacular"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
AGENT = {**AGENT, "RUNNER": "inline", "DEFAULT_AGENT": "bench"}
