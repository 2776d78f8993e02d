"""Cells that many tables have: costs, times, ids."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from governance.admin.console import words
from governance.admin.console.parts import Cell


def time_cell(instant: datetime | None) -> Cell:
    if instant is None:
        return Cell(text=words.NOTHING)
    return Cell(text=words.ago(instant, timezone.now()), title=words.exact_time(instant))


def id_cell(value: str | None, href: str = "") -> Cell:
    """The end of an id; the whole to copy where no link leads to it."""
    if value is None:
        return Cell(text=words.NOTHING)
    return Cell(text=words.short_id(value), href=href, title=value, copy="" if href else value)


def cost_cell(nanos: int | None, unpriced: int = 0, href: str = "") -> Cell:
    exact = "" if nanos is None else words.exact_dollars(nanos)
    return Cell(text=words.cost(nanos, unpriced), href=href, title=exact)


def tokens_cell(count: int | None) -> Cell:
    return Cell(text=words.NOTHING if count is None else words.number(count))


def status_cell(status: str | None, error_code: str | None = None) -> Cell:
    """A state in words; a failure with its code."""
    if status is None:
        return Cell(text=words.NOTHING)
    return Cell(text=words.state(status), note=error_code or "", mark="warn" if status == "failed" else "")
