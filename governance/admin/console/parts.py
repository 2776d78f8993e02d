"""What a page is made of: values that a template prints and does no arithmetic on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.safestring import SafeString

Text = str | Promise
SHORT = 18  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Some words, perhaps a door to what they are about."""

    text: Text
    href: str = ""
    title: str = ""  # the exact figure, or the whole of what was shortened
    mark: str = ""  # "warn" for what wants attention


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The first line of a screen: one big figure and the words that compare it."""

    figure: Said
    words: Sequence[Said] = ()
    notes: Sequence[Said] = ()  # unpriced, approximate, capped: what keeps the figure honest
    moved: Sequence[Said] = ()  # what changed it most


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A smaller figure with its name."""

    label: Text
    value: Said
    note: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    label: Text
    number: bool = False
    hidden: bool = False  # named for screen readers only


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value of a table; `share` (of the largest row, 0 to 100) draws a bar."""

    text: Text
    href: str = ""
    title: str = ""
    note: Text = ""
    mark: str = ""
    share: int | None = None
    copy: str = ""  # the whole id, for a click

    @property
    def short(self) -> bool:
        """Whether it stays on one line."""
        return len(str(self.text)) <= SHORT


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    cells: Sequence[Cell]
    total: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Where in a long list one is, and the ways on."""

    told: str
    newer: str = ""
    older: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    caption: Text
    heads: Sequence[Head]
    rows: Sequence[Row]
    empty: Text = ""
    csv: str = ""
    pages: Pages | None = None
    note: Text = ""
    chosen: Sequence[Said] = ()  # what the list was narrowed to, each a way to take it back

    @property
    def lines(self) -> list[tuple[bool, list[tuple[Head, Cell]]]]:
        """Each row's cells with their heads, which label them where a screen is too narrow for columns."""
        return [(row.total, list(zip(self.heads, row.cells, strict=True))) for row in self.rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    label: Text
    query: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    caption: Text
    svg: SafeString
    legend: Sequence[Said]
    data: Table
    line: Text = ""  # what the thin line is
    kind: str = "parts"  # or "states", which are coloured by what they mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    """Why there is nothing, and what to do about it."""

    why: Text
    then: Said | None = None
    command: str = ""
