"""Long lists: pages by number as far as they go, then by key; and what a list was narrowed to, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from django.utils.functional import Promise
from django.utils.translation import gettext

from agent.errors import Invalid
from governance.admin.console import words
from governance.admin.console.base import Visit
from governance.admin.console.parts import Pages, Said
from governance.queries.paging import COUNTED, Ask, pages
from governance.queries.selection import Selection
from governance.queries.values import Page

R = TypeVar("R")
ROWS = 25


def ask_of(visit: Visit) -> Ask:
    """Where in the list the address is."""
    text = visit.asked.own.get("page", "1")
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= COUNTED:
        raise Invalid.field("page", "a number from 1 up")
    return Ask(page=int(text), limit=ROWS, cursor=visit.asked.own.get("cursor"))


def where_of(visit: Visit, names: Iterable[str]) -> dict[str, str]:
    return {name: visit.asked.own[name] for name in names if name in visit.asked.own}


def all_of(
    visit: Visit, query: Callable[[Selection, Mapping[str, str], Ask], Page[R]], names: Iterable[str]
) -> Iterator[R]:
    """Every row of a list as it is narrowed; what is refused is refused before the first."""
    where = where_of(visit, names)
    query(visit.selection, where, Ask(limit=1))
    found: Iterator[R] = pages(lambda ask: query(visit.selection, where, ask))
    return found


def ways(visit: Visit, page: Page[R]) -> Pages:
    """Which rows these are, of how many, and the addresses of the neighbours."""
    total = words.number(page.total)
    if visit.asked.own.get("cursor"):
        told = gettext("further rows of more than %(total)s") % {"total": total}
        return Pages(told=told, newer=visit.asked.query(), older=_by_key(visit, page))
    first = (page.page - 1) * page.page_size + 1
    place = {"first": words.number(first), "last": words.number(first + len(page.rows) - 1), "total": total}
    if page.total_capped:
        told = gettext("%(first)s–%(last)s of more than %(total)s") % place
    else:
        told = gettext("%(first)s–%(last)s of %(total)s") % place
    more = page.next_cursor is not None
    numbered = (page.page + 1) * page.page_size <= COUNTED
    older = visit.asked.query(page=str(page.page + 1)) if numbered else _by_key(visit, page)
    newer = visit.asked.query(page=str(page.page - 1)) if page.page > 1 else ""
    return Pages(told=told, newer=newer, older=older if more else "")


def _by_key(visit: Visit, page: Page[R]) -> str:
    return visit.asked.query(cursor=page.next_cursor) if page.next_cursor else ""


def counted(page: Page[R]) -> str:
    return (
        gettext("more than %(n)s") % {"n": words.number(page.total)} if page.total_capped else words.number(page.total)
    )


def narrowed_to(visit: Visit, labels: Mapping[str, str | Promise]) -> list[Said]:
    """What the list was narrowed to, each a way to take it back."""
    return [
        Said(
            text=gettext("%(label)s: %(value)s ×") % {"label": labels[name], "value": value},
            href=visit.asked.query(**{name: None}),
            title=gettext("Show all again"),
        )
        for name, value in visit.asked.own.items()
        if name in labels
    ]
