"""Who acts, from outside: a host with a user model of its own, every shipped resolver, and one of the host's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.once
def test_any_user_model_and_any_resolver_names_the_same_actor_over_http_and_sockets() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.people.story"],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": os.fspath(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues" in done.stdout
