"""Rows and frames without their ids and times: two turns that went the same way read the same."""

from __future__ import annotations

import json
import re
from typing import Any

ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?")
MADE_OF_IDS = {"digest", "proposalId"}  # other ids, other value
TIMES = {"ms", "reasoning_ms", "reasoningMs", "duration_ms", "active_ms", "execution_ms"}


class Anonymous:
    """Writes values as JSON, each id as the number of its first appearance; key order stays as it is."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def __call__(self, value: object) -> str:
        text = TIME.sub("<time>", json.dumps(_timeless(value), default=str, indent=1))
        return ID.sub(lambda found: self._ids.setdefault(found[0], f"<id {len(self._ids)}>"), text)


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(item) for name, item in value.items() if name not in TIMES | MADE_OF_IDS}
    if isinstance(value, (list, tuple)):
        return [_timeless(item) for item in value]
    return value
