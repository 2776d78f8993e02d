"""One shape for every bench: a table for people, the same as JSON for comparing, and the load that it saw."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.machine import busy_seconds, load_average, machine

Row = Sequence[object]


class Report:
    """What a bench tells: lines as they come, and at the end its JSON."""

    def __init__(self, name: str, arguments: argparse.Namespace) -> None:
        self.results: dict[str, Any] = {}
        self._name, self._arguments = name, arguments
        self._machine = machine()
        self._load, self._busy, self._start = load_average(), busy_seconds(), time.monotonic()
        self.say(f"bench.{name}: {self._told(self._machine)}; load before {self._load}")

    def say(self, text: str = "") -> None:
        print(text, flush=True)

    def versions(self, **found: str) -> None:
        """Add the versions of what this bench alone uses."""
        new = {name: version for name, version in found.items() if self._machine.get(name) != version}
        self._machine |= new
        if new:
            self.say(self._told(new))

    def table(self, heads: Sequence[str], rows: Sequence[Row]) -> None:
        """Print rows under heads; the first column is left, the others right."""
        texts = [list(heads), *([_text(cell) for cell in row] for row in rows)]
        widths = [max(len(row[column]) for row in texts) for column in range(len(heads))]
        for row in texts:
            cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
            self.say("  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip())

    def close(self) -> None:
        """Say what load there was, and write the JSON where it was asked for."""
        seconds, load = time.monotonic() - self._start, load_average()
        busy = (busy_seconds() - self._busy) / seconds
        self.say(f"took {seconds:.0f} s; load after {load}; {busy:.2f} of {self._machine['cores']} cores were busy")
        if self._arguments.json:
            told = {
                "bench": self._name,
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "arguments": {name: value for name, value in vars(self._arguments).items() if name != "json"},
                "machine": self._machine,
                "load": {"before": self._load, "after": load, "busyCores": round(busy, 2), "seconds": round(seconds)},
                "results": self.results,
            }
            Path(self._arguments.json).write_text(json.dumps(told, indent=2, default=str) + "\n")

    @staticmethod
    def _told(values: dict[str, Any]) -> str:
        return ", ".join(f"{name} {value}" for name, value in values.items())


def bench(name: str, parser: argparse.ArgumentParser, run: Callable[[Report, argparse.Namespace], None]) -> None:
    """Read the arguments, run the bench, close its report whatever happens."""
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    arguments = parser.parse_args()
    report = Report(name, arguments)
    try:
        run(report, arguments)
    finally:
        report.close()


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:.2f}"
    return "" if cell is None else str(cell)
