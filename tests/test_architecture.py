"""The rules of the house that a reader would otherwise have to remember."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("agent", "governance", "project")
LONGEST_FILE = 300
# Spelled apart, so that this file does not find itself.
REGISTRIES = tuple(".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org")))
# May import where it runs: vendors' libraries are heavy, and Django's command line wants its settings first.
LAZY = ("agent/providers/", "governance/admin/console/charts.py", "governance/seeds.py", "manage.py")
# What commands make.
MADE = {"__pycache__", "build", "dist", "staticfiles", "var"}


@cache
def sources() -> tuple[Path, ...]:
    """The files of the repository, found without git: a newcomer may have unpacked an archive."""
    tops = [top for top in ROOT.iterdir() if top.name in {".ci", ".gitignore"} or top.name[0] not in "._"]
    found = [path for top in tops for path in ([top] if top.is_file() else top.rglob("*"))]
    return tuple(path for path in found if path.is_file() and not _made(path) and ".sqlite3" not in path.name)


def _made(path: Path) -> bool:
    """What a command left behind: also a hidden folder somewhere below, such as an environment of a bench."""
    parts = path.relative_to(ROOT).parts
    return not MADE.isdisjoint(parts) or any(part[0] == "." for part in parts[1:-1])


def modules(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    """Every module of these packages but the migrations: its path and its tree."""
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        if name.endswith(".py") and name.startswith(packages) and "/migrations/" not in name:
            yield name, ast.parse(path.read_text(), name)


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


def test_imports_point_inwards() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_domain_needs_only_the_standard_library() -> None:
    foreign = {
        f"{name}: {module}"
        for name, tree in modules("agent/domain/", "agent/errors.py")
        for module in imported(tree)
        if module.partition(".")[0] not in sys.stdlib_module_names
        and not module.startswith(("agent.domain", "agent.errors"))
    }
    assert not foreign


def test_nothing_is_imported_inside_a_function() -> None:
    late = [
        f"{name}:{inner.lineno}"
        for name, tree in modules("agent/", "governance/", "project/")
        if not name.startswith(LAZY)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for inner in ast.walk(node)
        if isinstance(inner, (ast.Import, ast.ImportFrom))
    ]
    assert not late


def test_models_are_imported_not_looked_up_by_name() -> None:
    looked_up = [
        f"{name}:{node.lineno}"
        for name, tree in modules("agent/", "governance/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "get_model"
    ]
    assert not looked_up


def test_only_conf_reads_our_settings() -> None:
    readers = [
        f"{name}:{node.lineno}"
        for name, tree in modules("agent/", "governance/")
        if name != "agent/conf.py"
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr == "AGENT")
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"getattr", "hasattr"}
            and any(isinstance(argument, ast.Constant) and argument.value == "AGENT" for argument in node.args)
        )
    ]
    assert not readers


def test_files_stay_short() -> None:
    long = {
        name: lines
        for path in sources()
        if (name := path.relative_to(ROOT).as_posix()).endswith(".py")
        and name.startswith(("agent/", "governance/"))
        and "/migrations/" not in name
        and (lines := len(path.read_text().splitlines())) > LONGEST_FILE
    }
    assert not long


def test_no_file_names_a_registry() -> None:
    naming = [
        path.relative_to(ROOT).as_posix()
        for path in sources()
        if any(registry.encode() in path.read_bytes() for registry in REGISTRIES)
    ]
    assert not naming


def test_pins_carry_hashes_and_no_address() -> None:
    for pins in ("dev.txt", "demo.txt"):
        lines = (ROOT / "requirements" / pins).read_text().splitlines()
        assert any(line.lstrip().startswith("--hash=sha256:") for line in lines)
        assert not [line for line in lines if "://" in line or line.startswith("-")]


def test_the_demo_runs_what_the_tests_ran() -> None:
    def versions(pins: str) -> set[str]:
        lines = (ROOT / "requirements" / pins).read_text().splitlines()
        return {line.partition(";")[0].rstrip(" \\") for line in lines if line[:1].isalnum()}

    assert versions("demo.txt") <= versions("dev.txt")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_is_a_package(package: str) -> None:
    bare = {
        path.parent.relative_to(ROOT).as_posix()
        for path in sources()
        if path.suffix == ".py"
        and path.is_relative_to(ROOT / package)
        and not (path.parent / "__init__.py").exists()
        and "static" not in path.parts
    }
    assert not bare
