"""People: who used how much, in how many conversations, and when they last did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agent.errors import NotFound
from governance.admin.console import words
from governance.admin.console.base import Load, Screen, Visit
from governance.admin.console.cells import cost_cell, time_cell
from governance.admin.console.empty import nothing_used
from governance.admin.console.parts import Answer, Card, Cell, Empty, Head, Row, Said, Table
from governance.limits import report_of
from governance.queries.cuts import People, PersonShare, people
from governance.queries.selection import NONE
from governance.queries.spend import spend_by_actor
from governance.queries.values import ActorSpend

SHOWN = 100


class PeopleScreen(Screen):
    page = "people"
    tables = {"people": lambda visit: (ActorSpend, spend_by_actor(visit.selection))}

    def parts(self, visit: Visit) -> Mapping[str, Load]:
        found = cache(partial(people, visit.selection, SHOWN))
        return {
            "answer": lambda visit: _answer(visit, found()),
            "cards": _limits,
            "table": lambda visit: _table(visit, found()),
        }


def _answer(visit: Visit, found: People) -> Answer | Empty:
    if not found.rows:
        return nothing_used(visit)
    first = found.rows[0].share
    told = {"person": first.label or first.key, "cost": words.cost(first.cost_nanos, first.unpriced_requests)}
    return Answer(
        figure=Said(text=ngettext("%(n)s person", "%(n)s people", found.total) % {"n": words.number(found.total)}),
        words=[Said(text=gettext("most of the cost: %(person)s, %(cost)s") % told)],
    )


def _limits(visit: Visit) -> Sequence[Card]:
    """How much of each limit is used, of the one person that is looked at."""
    ref = visit.asked.filters.get("actor")
    if ref is None or ref == NONE:
        return ()
    try:
        report = report_of(ref, visit.selection.tenants)
    except NotFound:  # whom the site does not know, or knows elsewhere: what they used here is shown all the same
        return ()
    return [card for window in report["windows"] for card in _window(window)]


def _window(window: Mapping[str, Any]) -> Iterator[Card]:
    label = gettext("Limit of the day") if window["period"] == "day" else gettext("Limit of the month")
    if "limitUsd" in window:
        used, limit = words.usd(window["usedUsd"]), words.usd(window["limitUsd"])
        yield Card(label=label, value=Said(text=gettext("%(used)s of %(limit)s") % {"used": used, "limit": limit}))
    if "limitTokens" in window:
        used, limit = words.short_number(window["usedTokens"]), words.short_number(window["limitTokens"])
        told = {"used": used, "limit": limit}
        yield Card(label=label, value=Said(text=gettext("%(used)s of %(limit)s tokens") % told))


def _table(visit: Visit, found: People) -> Table:
    capped = gettext("The %(n)s who cost most; a filter leads to the others.") % {"n": words.number(SHOWN)}
    return Table(
        caption=_("People"),
        heads=[
            Head(label=_("person")),
            Head(label=_("cost"), number=True),
            Head(label=_("share"), hidden=True),
            Head(label=_("change"), number=True),
            Head(label=_("calls"), number=True),
            Head(label=_("tokens"), number=True),
            Head(label=_("conversations"), number=True),
            Head(label=_("last call")),
        ],
        rows=[_row(visit, one) for one in found.rows],
        csv=visit.csv("people"),
        note=capped if found.total > SHOWN else "",
    )


def _row(visit: Visit, one: PersonShare) -> Row:
    share, ref = one.share, str(one.share.key)
    return Row(
        cells=[
            Cell(text=share.label or ref, href=visit.to("spend", actor=ref), title=ref),
            cost_cell(share.cost_nanos, share.unpriced_requests, visit.to("usage", actor=ref)),
            Cell(text="", share=share.of_largest),
            Cell(text=words.changed(share.cost)),
            Cell(text=words.number(share.requests), href=visit.to("usage", actor=ref)),
            Cell(text=words.short_number(share.total_tokens), title=words.number(share.total_tokens)),
            Cell(text=words.number(one.threads), href=visit.to("threads", actor=ref)),
            time_cell(one.last_used_at),
        ]
    )
