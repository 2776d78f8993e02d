"""A host project never finds a change of ours to make a migration of, whatever its settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.once

SETTINGS = """
SECRET_KEY = "x"
INSTALLED_APPS = [
    "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
    "django.contrib.messages", "people", "agent", "governance",
]
AUTH_USER_MODEL = "people.Person"
DEFAULT_AUTO_FIELD = "django.db.models.{auto}"
LANGUAGE_CODE = "{language}"
USE_I18N = True
USE_TZ = {use_tz}
TIME_ZONE = "America/Sao_Paulo"
USE_THOUSAND_SEPARATOR = True
DEFAULT_TABLESPACE = "{tablespace}"
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}}
AGENT = {{}}
"""

PEOPLE = """
import uuid

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models

from agent.models import Thread  # a host's app may depend on ours


class Person(AbstractBaseUser):
    key = models.UUIDField(primary_key=True, default=uuid.uuid4)
    badge = models.CharField(max_length=20, unique=True)
    last_thread = models.ForeignKey(Thread, models.SET_NULL, null=True)
    USERNAME_FIELD = "badge"
"""

CHECK = """
import django
django.setup()
from django.core.management import call_command
from django.utils import translation
call_command("makemigrations", "people", verbosity=0)
call_command("makemigrations", "agent", "governance", check_changes=True, dry_run=True)
call_command("migrate", verbosity=0)
from django.apps import apps
for label in ("agent", "governance"):
    for model in apps.get_app_config(label).get_models():
        assert model._meta.pk.get_internal_type() in ("BigAutoField", "CharField"), model
with translation.override("fr"):
    call_command("makemigrations", check_changes=True, dry_run=True)
"""


@pytest.mark.parametrize(
    ("auto", "language", "use_tz", "tablespace"),
    [("AutoField", "en", True, ""), ("BigAutoField", "pt-br", False, "fast"), ("SmallAutoField", "de", True, "")],
)
def test_a_host_has_no_migration_of_ours_to_make(
    tmp_path: Path, *, auto: str, language: str, use_tz: bool, tablespace: str
) -> None:
    people = tmp_path / "people"
    (people / "migrations").mkdir(parents=True)
    (people / "__init__.py").touch()
    (people / "migrations" / "__init__.py").touch()
    (people / "models.py").write_text(PEOPLE)
    settings = SETTINGS.format(auto=auto, language=language, use_tz=use_tz, tablespace=tablespace)
    (tmp_path / "host_settings.py").write_text(settings)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHECK],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "DJANGO_SETTINGS_MODULE": "host_settings"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
