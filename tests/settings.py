"""Settings of a small host site for the tests; the database comes from DATABASE_URL, else it is a file of our own."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from project.database import database
from tests import network

network.shut()


def _own_directory() -> Path:
    """A directory of this process; a process that it forks does not remove it."""
    directory, owner = Path(tempfile.mkdtemp(prefix="steward-tests-")), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)
    return directory


def _databases(url: str) -> dict[str, dict[str, Any]]:
    config = database(url or f"sqlite:///{_own_directory()}/site.sqlite3")
    vendor = config["ENGINE"].rpartition(".")[2]
    if vendor == "sqlite3":
        # In Django's usual database in memory, threads fail with "database table is locked".
        config["TEST"] = {"NAME": str(Path(config["NAME"]).with_name("test.sqlite3"))}
    elif vendor == "mysql":
        # The server is shared: two runs at once must not meet.
        config["TEST"] = {"NAME": f"test_steward_{os.getpid()}", "CHARSET": "utf8mb4"}
    return {"default": config}


DATABASE_URL = os.environ.get("DATABASE_URL", "")
if DATABASE_URL.startswith("mysql"):
    import pymysql

    pymysql.install_as_MySQLdb()

DATABASES = _databases(DATABASE_URL)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

SECRET_KEY = "only-for-tests"
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
ROOT_URLCONF = "tests.urls"
ASGI_APPLICATION = "tests.asgi.application"

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
    "tests.site",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
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

STATIC_URL = "static/"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication",
        "rest_framework.authentication.BasicAuthentication",
    ],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}

AGENT: dict[str, Any] = {}
