"""The host's settings: the test site's, with its own people and a database of its own."""

from project.database import database
from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS, _own_directory

AUTH_USER_MODEL = "people.Person"
INSTALLED_APPS = [*INSTALLED_APPS, "tests.people"]
ROOT_URLCONF = "tests.people.urls"
DATABASES = {"default": database(f"sqlite:///{_own_directory()}/people.sqlite3")}
AGENT = {"PROVIDERS": {"scripted": "tests.people.model.provider"}, "DEFAULT_AGENT": "desk"}
