"""What every test stands on: the network is shut, legs choose their tests, and CI skips nothing."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import network
from tests.demo_site import prepared
from tests.services import nginx, valkey_server

network.shut()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and all that it starts

ROOT = Path(__file__).parent
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
# These never speak to the site's database, or bring one of their own.
ONCE = {"domain", "browser", "packaging"}
VENDORS = {"": "sqlite", "sqlite": "sqlite", "postgres": "postgresql", "postgresql": "postgresql", "mysql": "mysql"}

# The machine may be busy: time is no verdict. CI repeats what the day before it did.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
hypothesis.settings.load_profile("ci" if IN_CI else "default")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this leg cannot or need not show; a test is left out, never skipped."""
    vendor = VENDORS[os.environ.get("DATABASE_URL", "").partition(":")[0]]
    no_nginx = not IN_CI and nginx.binary() is None  # a web server is not asked of whoever wants to try the tests
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        if item.path.relative_to(ROOT).parts[0] in ONCE:
            item.add_marker("once")
        only = item.get_closest_marker("only_on")
        fits = (only is None or vendor in only.args) and not (no_nginx and item.get_closest_marker("needs_nginx"))
        (kept if fits else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def demo_database(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Gives a database of its own for each demo: made once, which takes seconds, and copied."""
    made = prepared(tmp_path_factory.mktemp("demo"))
    return lambda: Path(shutil.copy(made, tmp_path_factory.mktemp("demo")))


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The URL of a real server that speaks Redis, fresh for this session."""
    with valkey_server() as url:
        yield url
