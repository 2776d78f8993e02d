"""What a page was asked for: its days, its filters, its own choices. All of it is in the address."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from urllib.parse import urlencode

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from agent.errors import Invalid
from agent.models.tenants import Tenants
from governance.days import ONE_DAY, DayRange, parse_day, today
from governance.queries.selection import WIRE, Selection, value_of

FROM, TO = DAYS = ("fromDay", "toDay")
EXPORT = ("format", "table")  # which table as a file
PLACE = ("page", "cursor")  # in a long list; another view starts at its beginning
LABELS: Mapping[str, Promise] = {
    "tenantRef": _("tenant"),
    "agent": _("agent"),
    "model": _("model"),
    "actor": _("person"),
    "purpose": _("purpose"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    days: DayRange
    filters: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)  # what this screen alone knows: a tab, a page, a status

    @classmethod
    def of(cls, query: Mapping[str, str], own: Collection[str] = ()) -> Asked:
        """Read an address; a parameter that no page of this kind knows is an error that names it."""
        given = {name: text for name, text in query.items() if text}
        allowed = (*DAYS, *WIRE, *own)
        for name, text in given.items():
            if name not in allowed and name not in EXPORT:
                raise Invalid.field(name, f"not known here; there are {', '.join(allowed)}")
            value_of(name, text)
        first, last = (parse_day(name, given[name]) if name in given else None for name in DAYS)
        return cls(
            days=DayRange.of(first, last),
            filters={name: given[name] for name in WIRE if name in given},
            own={name: given[name] for name in own if name in given},
        )

    def selection(self, tenants: Tenants, *, text: bool) -> Selection:
        """The same for the queries, within what the asker may see."""
        filters = {WIRE[name]: value for name, value in self.filters.items()}
        return Selection.of(self.days, filters, tenants=tenants, text=text)

    def query(self, **changes: str | None) -> str:
        """The address of this view with other words in it; None takes one out."""
        kept = {name: text for name, text in self.own.items() if name not in PLACE}
        said = {FROM: self.days.first.isoformat(), TO: self.days.last.isoformat(), **self.filters, **kept, **changes}
        return "?" + urlencode({name: text for name, text in said.items() if text is not None})

    def elsewhere(self, **changes: str | None) -> str:
        """The same days and filters on another screen, which has choices of its own."""
        return replace(self, own={}).query(**changes)

    @property
    def kept(self) -> list[tuple[str, str]]:
        """What the form of the days keeps: the filters and the screen's own choices, from the first page on."""
        own = [(name, text) for name, text in self.own.items() if name not in PLACE]
        return [*self.filters.items(), *own]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One way of the date bar."""

    label: Promise
    query: str
    chosen: bool


def presets(asked: Asked) -> Iterator[Preset]:
    """Today, the last days, this month and the last one. The days stand in the address, so a link keeps its view."""
    end = today(asked.days.zone)
    last_month = end.replace(day=1) - ONE_DAY
    spans: list[tuple[Promise, date, date]] = [
        (_("Today"), end, end),
        (_("7 days"), end - timedelta(days=6), end),
        (_("30 days"), end - timedelta(days=29), end),
        (_("90 days"), end - timedelta(days=89), end),
        (_("This month"), end.replace(day=1), end),
        (_("Last month"), last_month.replace(day=1), last_month),
    ]
    for label, first, last in spans:
        chosen = (first, last) == (asked.days.first, asked.days.last)
        yield Preset(label=label, query=asked.query(**{FROM: first.isoformat(), TO: last.isoformat()}), chosen=chosen)
