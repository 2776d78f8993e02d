"""The fenced blocks of a page, as steps that a reader takes: write this file, add to that one, type these commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:#|\{#) (?P<path>[\w/.-]+\.\w+)(?P<add>: at the end)?(?: #\})?")


@dataclass(frozen=True, slots=True)
class Written:
    """A file as the reader types it; `add` puts it at the end of what is there."""

    path: str
    text: str
    add: bool

    def follow(self, directory: Path) -> None:
        target = directory / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        before = target.read_text() if self.add else ""
        target.write_text(f"{before}\n{self.text}" if before else self.text)


@dataclass(frozen=True, slots=True)
class Typed:
    """One command line."""

    words: tuple[str, ...]


Step = Written | Typed


def steps(page: str, heading: str | None = None) -> list[Step]:
    """The steps of a page, or of its one section with that heading, in their order."""
    text = (ROOT / page).read_text()
    if heading is not None:
        _, found, text = text.partition(f"\n## {heading}\n")
        assert found, f"{page} has no section {heading!r}"
        text = re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0]
    return [step for block in FENCE.finditer(text) for step in _steps(block["kind"], block["text"])]


def _steps(kind: str, text: str) -> Iterator[Step]:
    if kind not in {"console", "python", "html"}:  # what the reader sees, or does elsewhere
        return
    if kind == "console":
        for line in text.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield Typed(tuple(words))
        return
    named = FILE.match(text)
    assert named, f"the block does not name its file in the first line:\n{text}"
    yield Written(named["path"], text, add=bool(named["add"]))
