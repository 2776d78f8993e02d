"""A wheel, and a site that has followed the README: made once, and looked at from many sides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.host import Environment, Host, export, follow, make_site
from tests.packaging.steps import steps

SECTION = "Add it to your site"


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packaging")


@pytest.fixture(scope="session")
def checkout(place: Path) -> Path:
    """Where the README says that it is: beside the site."""
    return export(place / "django-steward")


@pytest.fixture(scope="session")
def wheel(place: Path, checkout: Path) -> Path:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place / "dist"), str(checkout)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = (place / "dist").iterdir()
    return built


@pytest.fixture(scope="session")
def host(place: Path, checkout: Path) -> Host:
    """A site whose developer has typed what the README says; its servers are not started."""
    environment = Environment.make(place / "environment")
    directory = make_site(environment, place / "mysite")
    given = steps("README.md", SECTION)
    return Host(environment, directory, given, follow(given, environment, directory))
