"""The checklist names every feature and every fault once, and each test that it names is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| (F-\d{3}|B\d+) \| (.+) \| (open|`tests/[^|]+`) \|$", re.MULTILINE)
SHOWN = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
FEATURES, FAULTS = 206, 106


def rows() -> list[tuple[str, str, str]]:
    return ROW.findall((ROOT / "docs" / "checklist.md").read_text())


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def test_every_feature_and_every_fault_is_there_once() -> None:
    ids = [row[0] for row in rows()]
    assert len(ids) == len(set(ids))
    assert sorted(one for one in ids if one.startswith("F")) == [f"F-{number:03}" for number in range(1, FEATURES + 1)]
    assert sum(one.startswith("B") for one in ids) == FAULTS
    lines = [line for line in (ROOT / "docs" / "checklist.md").read_text().splitlines() if line.startswith("| ")]
    assert len(ids) == len(lines) - 2, "a line that is not understood"


def test_every_test_that_is_named_is_there() -> None:
    for one, _, shown in rows():
        named = SHOWN.findall(shown)
        assert shown in ("open", ", ".join(f"`{path}::{name}`" for path, name in named)), f"{one}: not understood"
        assert len(named) == len(set(named)), f"{one}: named twice"
        assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == [], one


def test_little_is_open_and_said_so() -> None:
    assert {row[0] for row in rows() if row[2] == "open"} == {"B113"}
