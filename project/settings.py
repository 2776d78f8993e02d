"""Settings of the demo site, read from the environment or from a file `.env` beside manage.py.

DEBUG=1 (the default) is the demo on this machine; DEBUG=0 is a deployment and wants SECRET_KEY and ALLOWED_HOSTS.
"""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import django
import environ

from agent.providers.pydantic_ai import provider_from_environment
from project.database import database

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
if (BASE_DIR / ".env").is_file():
    environ.Env.read_env(BASE_DIR / ".env")

# ---- where it runs ---------------------------------------------------------------------------------------------------

DEBUG: bool = env.bool("DEBUG", default=True)
HOST: str = env.str("HOST", default="127.0.0.1")
SECRET_KEY: str = env.str("SECRET_KEY", default="the-demo-key-is-public" if DEBUG else environ.Env.NOTSET)

_local_hosts = ["localhost", "127.0.0.1", "[::1]"]
_demo_hosts = ["*"] if HOST in {"0.0.0.0", "::"} else [*_local_hosts, HOST]  # noqa: S104
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=_demo_hosts if DEBUG else [])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])

ROOT_URLCONF = "project.urls"
ASGI_APPLICATION = "project.asgi.application"
WSGI_APPLICATION = "project.wsgi.application"

# ---- what it is made of ----------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "channels",
    "agent",
    "governance",
    "project",  # the demo's agent in agents.py, and its commands
    "project.shop",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware"
    if django.VERSION >= (6, 0)
    else "project.csp.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# ---- where it keeps things -------------------------------------------------------------------------------------------

DATABASES = {"default": database(env.str("DATABASE_URL", default=f"sqlite:///{quote(str(BASE_DIR))}/demo.sqlite3"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL: str = env.str("REDIS_URL", default="")
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"},
}
CELERY_BROKER_URL: str = env.str("CELERY_BROKER_URL", default=REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 20.0
CELERY_BEAT_SCHEDULE = {
    "agent.recover": {"task": "agent.recover", "schedule": 30},
    "agent.purge": {"task": "agent.purge", "schedule": 600},
    "governance.roll_up": {"task": "governance.roll_up", "schedule": 300},
}

STATIC_URL = "static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "agent_attachments": {  # served by nobody: a file's url is the agent's own
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": env.str("ATTACHMENTS_FOLDER", default=str(BASE_DIR / "demo_files"))},
    },
}
STATIC_ROOT = BASE_DIR / "staticfiles"

# ---- words and days --------------------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
TIME_ZONE: str = env.str("TIME_ZONE", default="UTC")
USE_I18N = True
USE_TZ = True

# ---- who may do what -------------------------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = ["project.signing_in.SiteBackend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": ["'self'"],
    "img-src": ["'self'", "data:"],  # the admin's style sheets hold small pictures
    "object-src": ["'none'"],
    "base-uri": ["'none'"],
    "form-action": ["'self'"],
    "frame-ancestors": ["'none'"],
}

SECURE_SSL_REDIRECT: bool = env.bool("SECURE_SSL_REDIRECT", default=not DEBUG)
SECURE_HSTS_SECONDS: int = env.int("SECURE_HSTS_SECONDS", default=0 if DEBUG else 365 * 24 * 3600)
SECURE_HSTS_INCLUDE_SUBDOMAINS = not DEBUG
SECURE_HSTS_PRELOAD = not DEBUG
SESSION_COOKIE_SECURE = not DEBUG
CSRF_COOKIE_SECURE = not DEBUG
if env.bool("BEHIND_TLS_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication",
        "rest_framework.authentication.BasicAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "django-steward",
    "DESCRIPTION": "Conversations with governed agents: threads, live streams, decisions and spend.",
    "VERSION": "0.1.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
}

# ---- what it tells its operators -------------------------------------------------------------------------------------

LOG_LEVEL: str = env.str("LOG_LEVEL", default="INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        name: {"handlers": ["console"], "level": LOG_LEVEL, "propagate": False}
        for name in ("agent", "governance", "project", "django")
    },
}

# ---- the agent -------------------------------------------------------------------------------------------------------

# With a key or a server's address in the environment a real model answers; else a script that needs nothing.
_hosted_model = provider_from_environment(os.environ)

AGENT: dict[str, Any] = {
    "PROVIDERS": {"scripted": "project.scripted.shop", **({"environment": _hosted_model} if _hosted_model else {})},
    "DEFAULT_PROVIDER": "environment" if _hosted_model else "scripted",
    "DEFAULT_AGENT": "shop",
    "RUNNER": env.str("RUNNER", default="inline"),  # "celery": turns run on `celery -A project worker`
    "SERVE_SCHEMA": True,
    "ATTACHMENTS": {"MAX_BYTES": 5 * 1024 * 1024},
}
