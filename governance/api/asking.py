"""How a request asks a query: days, filters, page; what is not known is refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rest_framework.request import Request

from agent.admin.scope import scope_of
from agent.api.parsing import limit_of
from agent.errors import Invalid
from governance.days import DayRange, parse_day
from governance.permissions import TEXT
from governance.queries import Ask, Selection
from governance.queries.paging import PAGE_DEFAULT, PAGE_MOST
from governance.queries.selection import WIRE

DAYS = ("fromDay", "toDay")
PAGING = ("page", "limit", "cursor")
_WHERE = re.compile(r"where\[(\w{1,40})\]\Z")
_NUMBER = re.compile(r"[1-9][0-9]{0,6}\Z")


def selection(request: Request, *, takes: tuple[str, ...] = ()) -> Selection:
    """The days and filters of a request, within the tenants and the text that its user may see."""
    given = {name: str(value) for name, value in request.query_params.items()}
    filters: dict[str, str] = {}
    for name, value in given.items():
        if name in WIRE:
            filters[WIRE[name]] = value
        elif name not in {*DAYS, *takes, "format"} and not ("where" in takes and _WHERE.match(name)):
            raise Invalid.field(name, f"not known here; there are {', '.join([*DAYS, *WIRE, *takes])}")
    first, last = (parse_day(name, given[name]) if name in given else None for name in DAYS)
    return Selection.of(
        DayRange.of(first, last),
        filters,
        tenants=scope_of(request._request),
        text=request.user.has_perm(TEXT),
    )


def only(request: Request, *names: str) -> None:
    """Refuse every parameter but these, where no days and no filters choose anything."""
    for name in request.query_params:
        if name not in {*names, "format"}:
            raise Invalid.field(name, f"not known here; there are {', '.join(names)}")


def where(request: Request) -> Mapping[str, str]:
    found = ((_WHERE.match(name), str(value)) for name, value in request.query_params.items())
    return {match[1]: value for match, value in found if match}


def ask(request: Request) -> Ask:
    page = request.query_params.get("page", "1")
    if not _NUMBER.match(page):
        raise Invalid.field("page", "a whole number from 1")
    limit = limit_of(request, default=PAGE_DEFAULT, maximum=PAGE_MOST)
    return Ask(page=int(page), limit=limit, cursor=request.query_params.get("cursor"))
