"""Tables as CSV (spec 08 §10): streamed, safe to open in a spreadsheet, exact to the nano, and logged."""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from agent.conf import agent_settings
from agent.db import in_tool
from agent.domain.clock import wire_time
from governance.wire import NANOS, columns

logger = logging.getLogger("governance.export")

BOM = "\ufeff"
LINES_AT_ONCE = 500
PLACES = 9
# A spreadsheet takes a cell that begins so for a formula; the full-width forms too.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What is exported, by whom and how it was filtered: for the log and the file's name."""

    by: str
    screen: str
    asked: str


def csv_response(
    request: HttpRequest, export: Export, kind: type, rows: Iterable[Any], *, without: frozenset[str] = frozenset()
) -> StreamingHttpResponse:
    """The rows as a file, a part at a time: the memory is that of a part, however long the table is."""
    parts = _parts(export, kind, rows, without)
    body = _threaded(parts) if isinstance(request, ASGIRequest) else parts
    response = StreamingHttpResponse(body, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{export.screen}.csv"'
    response["Cache-Control"] = "no-store"
    return response


def lines(kind: type, rows: Iterable[Any], *, without: frozenset[str] = frozenset()) -> Iterator[Sequence[str]]:
    """The head, then a line a row; the last one says so when there were more than may be exported."""
    names = [(name, shown) for name, shown in columns(kind) if name not in without]
    priced = any(name == "cost_nanos" for name, _ in names)
    yield [*(shown for _, shown in names), *(["priced"] if priced else [])]
    most = agent_settings().export_max_rows
    iterator = iter(rows)
    for row in islice(iterator, most):
        cells = [_cell(name, getattr(row, name)) for name, _ in names]
        yield [*cells, *(["no" if row.cost_nanos is None else "yes"] if priced else [])]
    if next(iterator, None) is not None:
        yield [f"# cut after {most} rows"]


def _parts(export: Export, kind: type, rows: Iterable[Any], without: frozenset[str]) -> Iterator[str]:
    told, number = lines(kind, rows, without=without), -1
    yield BOM
    while some := list(islice(told, LINES_AT_ONCE)):
        number += len(some)
        buffer = io.StringIO()
        csv.writer(buffer).writerows(some)
        yield buffer.getvalue()
    logger.info("%s exported %s: %s rows of %s", export.by, export.screen, max(number, 0), export.asked)


async def _threaded(parts: Iterator[str]) -> AsyncIterator[str]:
    """The parts, each made on a thread: a server that waits for one serves others meanwhile."""
    while (part := await in_tool(next, parts, None)) is not None:
        yield part


def _cell(name: str, value: Any) -> str:  # noqa: ANN401  (any field)
    if value is None:
        return ""
    if name.endswith(NANOS):
        return decimal_usd(value)
    if isinstance(value, datetime):
        return wire_time(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float | date):
        return str(value)
    return safe(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def decimal_usd(nanos: int) -> str:
    """Nanos as decimal text: no float in between."""
    sign, digits = "-" if nanos < 0 else "", f"{abs(nanos):0{PLACES + 1}d}"
    return f"{sign}{digits[:-PLACES]}.{digits[-PLACES:]}"


def safe(text: str) -> str:
    """Text that no spreadsheet takes for a formula; a number is left as it is."""
    if not text.startswith(FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
