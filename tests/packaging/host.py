"""Somebody else's site, made as Django makes one: an own user model without a user name, a shop, its own sign-in."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.steps import ROOT, Step, Typed, Written

MADE = {"__pycache__", "build", "dist", "staticfiles", "var"}
EMAIL, PASSWORD, ORDER = "ana@host.example", "blue-lantern-42", 1042

MODELS = """
import uuid

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models


class PersonManager(BaseUserManager):
    def create_user(self, email, password=None, **fields):
        person = self.model(email=email, **fields)
        person.set_password(password)
        person.save()
        return person


class Person(AbstractBaseUser, PermissionsMixin):
    key = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(unique=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    objects = PersonManager()
    USERNAME_FIELD = "email"


class Order(models.Model):
    customer = models.ForeignKey(Person, models.CASCADE)
    number = models.IntegerField(unique=True)
    status = models.CharField(max_length=20)
"""
SETTINGS = """
INSTALLED_APPS += ["shop"]
AUTH_USER_MODEL = "shop.Person"
LOGIN_REDIRECT_URL = "/support/"
"""
URLS = """
from django.contrib.auth.views import LoginView

urlpatterns += [path("accounts/login/", LoginView.as_view(template_name="shop/login.html"))]
"""
FILES = {
    "mysite/settings.py": SETTINGS,
    "mysite/urls.py": URLS,
    "shop/__init__.py": "",
    "shop/models.py": MODELS,
    "shop/migrations/__init__.py": "",
    "shop/templates/shop/login.html": "<form method=post>{% csrf_token %}{{ form }}<button>Sign in</button></form>",
}
FILL = f"""
import os

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "mysite.settings"
django.setup()

from django.core.management import call_command

call_command("makemigrations", "shop", verbosity=0)
call_command("migrate", verbosity=0)

from shop.models import Order, Person

ana = Person.objects.create_user({EMAIL!r}, {PASSWORD!r})
bo = Person.objects.create_user("bo@host.example")
Order.objects.create(customer=ana, number={ORDER}, status="on its way")
Order.objects.create(customer=bo, number=7, status="packed")
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with what the tests have, except our own packages."""

    directory: Path

    @classmethod
    def make(cls, directory: Path) -> Environment:
        venv.create(directory, symlinks=True)
        made = cls(directory)
        # A path in a .pth is searched last, and the .pth files in it are not read: no editable install comes along.
        (made.site_packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
        return made

    @property
    def site_packages(self) -> Path:
        return next(self.directory.glob("lib/python*/site-packages"))

    def run(self, *words: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
        """A command line to its end, which must be a good one."""
        done = subprocess.run(
            self.words(words), cwd=cwd, env=self.env(**more), text=True, capture_output=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
        return done

    def words(self, words: tuple[str, ...]) -> list[str]:
        """As a shell finds them: `python` is the environment's own."""
        assert words[0] == "python", f"a step calls {words[0]}"
        return [str(self.directory / "bin" / "python"), *words[1:]]

    def env(self, **more: str) -> dict[str, str]:
        """Ours without what leads to our checkout or our settings; pip builds with what is there and asks nobody."""
        ours = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "DJANGO", "DATABASE", "PIP_", "AGENT", "OPENAI", "ANTHROPIC"))
        }
        quiet = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        quiet["PIP_NO_BUILD_ISOLATION"] = "0"  # pip reads the value of a --no-... option as that of its opposite
        return {**ours, **quiet, **more}


def export(directory: Path) -> Path:
    """The checkout without anything that is not part of it: tracked files where git knows them."""
    for name in _tracked():
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    return directory


def _tracked() -> Iterator[str]:
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
        yield from (name for name in listed.stdout.split("\0") if name and (ROOT / name).exists())
        return
    for path in ROOT.rglob("*"):  # an unpacked archive
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") for part in parts[:-1])
        if path.is_file() and not hidden and not MADE & {*parts} and ".sqlite3" not in path.name:
            yield "/".join(parts)


def make_site(environment: Environment, directory: Path) -> Path:
    """The site before we came: it runs, and has people and orders."""
    directory.mkdir()
    environment.run("python", "-m", "django", "startproject", "mysite", ".", cwd=directory)
    for name, text in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + text)
    environment.run("python", "-c", FILL, cwd=directory)
    return directory


def follow(given: list[Step], environment: Environment, site: Path) -> dict[str, str]:
    """Take every step; what the commands printed, by command line. Servers are for the caller to start."""
    printed: dict[str, str] = {}
    for step in given:
        match step:
            case Written():
                step.follow(site)
            case Typed() if not serves(step):
                done = environment.run(*step.words, cwd=site)
                printed[" ".join(step.words)] = done.stdout + done.stderr
    return printed


def serves(step: Step) -> bool:
    return isinstance(step, Typed) and not {"runserver", "daphne", "uvicorn"}.isdisjoint(step.words)


@dataclass(frozen=True, slots=True)
class Host:
    """A site that has taken steps, and what its commands printed."""

    environment: Environment
    directory: Path
    steps: list[Step]
    printed: dict[str, str]

    def manage(self, *words: str) -> str:
        done = self.environment.run("python", "manage.py", *words, cwd=self.directory)
        return done.stdout + done.stderr

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.directory / "db.sqlite3")) as database:
            return database.execute(query).fetchall()

    def server(self, name: str) -> Typed:
        """The step that starts that server."""
        (found,) = (step for step in self.steps if isinstance(step, Typed) and name in step.words)
        return found

    def copy(self, directory: Path, *, data: bool = True) -> Host:
        """The same site in another place, to go on with there."""
        unwanted = shutil.ignore_patterns("*.log", *(() if data else ("db.sqlite3*",)))
        shutil.copytree(self.directory, directory, ignore=unwanted)
        return Host(self.environment, directory, self.steps, {})
