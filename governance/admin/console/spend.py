"""Spend: what it cost, against the time before, and what it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agent.errors import Invalid
from governance.admin.console import words
from governance.admin.console.base import Load, Screen, Visit
from governance.admin.console.empty import nothing_used
from governance.admin.console.parts import Answer, Card, Cell, Empty, Head, Row, Said, Tab, Table
from governance.admin.console.spend_chart import chart
from governance.days import today
from governance.limits import near_limits
from governance.queries.changes import Mover, Share, SpendChange, month_pace, spend_change, spend_shares
from governance.queries.cuts import cache_saved
from governance.queries.selection import NONE
from governance.queries.spend import (
    TOP_MOST,
    spend_by_actor,
    spend_by_agent,
    spend_by_model,
    spend_by_purpose,
    spend_by_tenant,
    spend_by_thread,
    spend_summary,
    usage_trend,
)
from governance.queries.values import (
    ActorSpend,
    AgentSpend,
    DaySpend,
    ModelSpend,
    PurposeSpend,
    TenantSpend,
    ThreadSpend,
)

ROWS = 12  # of a division; filters lead to the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """One way to divide the spend: the column of the ledger, and the filter that chooses one part."""

    label: Promise
    head: Promise
    column: str
    filter: str


DIVISIONS: Mapping[str, Division] = {
    "model": Division(label=_("By model"), head=_("model"), column="model_id", filter="model"),
    "agent": Division(label=_("By agent"), head=_("agent"), column="agent_name", filter="agent"),
    "person": Division(label=_("By person"), head=_("person"), column="actor_ref", filter="actor"),
    "tenant": Division(label=_("By tenant"), head=_("tenant"), column="tenant_ref", filter="tenantRef"),
    "purpose": Division(label=_("By purpose"), head=_("purpose"), column="purpose", filter="purpose"),
}


class SpendScreen(Screen):
    page = "spend"
    template = "governance/console/spend.html"
    own = ("by",)
    slow = frozenset({"agent", "model", "purpose"})  # of conversations
    tables = {
        "model": lambda visit: (ModelSpend, spend_by_model(visit.selection)),
        "agent": lambda visit: (AgentSpend, spend_by_agent(visit.selection)),
        "person": lambda visit: (ActorSpend, spend_by_actor(visit.selection)),
        "tenant": lambda visit: (TenantSpend, spend_by_tenant(visit.selection)),
        "purpose": lambda visit: (PurposeSpend, spend_by_purpose(visit.selection)),
        "days": lambda visit: (DaySpend, usage_trend(visit.selection)),
        "threads": lambda visit: (ThreadSpend, spend_by_thread(visit.selection, TOP_MOST)),
    }

    def parts(self, visit: Visit) -> Mapping[str, Load]:
        division_of(visit)
        return {
            "answer": answer,
            "chart": chart,
            "cards": cards,
            "tabs": tabs,
            "table": division,
            "threads": dearest_threads,
        }


def division_of(visit: Visit) -> Division:
    name = visit.asked.own.get("by", "model")
    if name not in DIVISIONS:
        raise Invalid.field("by", f"one of {', '.join(DIVISIONS)}")
    return DIVISIONS[name]


# ---- the answer --------------------------------------------------------------------------------------------------


def answer(visit: Visit) -> Answer | Empty:
    change = spend_change(visit.selection)
    if not change.requests.now:
        return nothing_used(visit)
    return Answer(
        figure=Said(
            text=gettext("unpriced") if change.cost_nanos is None else words.dollars(change.cost_nanos),
            href=visit.to("usage"),
            title="" if change.cost_nanos is None else words.exact_dollars(change.cost_nanos),
        ),
        words=[Said(text=_against(visit, change))],
        notes=[*_unpriced(visit, change), *_pace(visit, change), *_limits(visit)],
        moved=[_mover(visit, mover) for mover in change.moved],
    )


def _against(visit: Visit, change: SpendChange) -> str:
    """The difference to the time before, absolute and as a percentage; never judged by a colour."""
    before = words.days_before(len(visit.asked.days))
    if not change.has_before:
        return gettext("no earlier data in %(before)s") % {"before": before}
    difference = words.signed(words.dollars(change.cost.difference), change.cost.difference)
    if change.cost.ratio is None:
        return gettext("%(difference)s against %(before)s") % {"difference": difference, "before": before}
    ratio = words.signed(words.percent(change.cost.ratio), change.cost.difference)
    told = {"difference": difference, "ratio": ratio, "before": before}
    return gettext("%(difference)s (%(ratio)s) against %(before)s") % told


def _unpriced(visit: Visit, change: SpendChange) -> Iterator[Said]:
    if change.unpriced_requests:
        count = change.unpriced_requests
        told = ngettext(
            "%(n)s call is unpriced and not in the sum: see which",
            "%(n)s calls are unpriced and not in the sum: see which",
            count,
        )
        yield Said(text=told % {"n": words.number(count)}, href=visit.to("usage", priced="no"), mark="warn")


def _pace(visit: Visit, change: SpendChange) -> Iterator[Said]:
    now = today(visit.asked.days.zone)
    pace = month_pace(visit.selection, change.cost.now, now)
    if pace is not None:
        explained = gettext("The average of the days so far, for every day of the month")
        yield Said(text=gettext("at this pace %(cost)s this month") % {"cost": words.dollars(pace)}, title=explained)


def _limits(visit: Visit) -> Iterator[Said]:
    """Who is about to be held up by a limit, or is."""
    for one in near_limits(visit.selection):
        if one.ratio is None:
            texts = {
                "day": gettext("%(who)s has used up the day's limit"),
                "month": gettext("%(who)s has used up the month's limit"),
            }
            told = texts[one.period] % {"who": one.label}
        else:
            texts = {
                "day": gettext("%(who)s is at %(ratio)s of the day's limit"),
                "month": gettext("%(who)s is at %(ratio)s of the month's limit"),
            }
            told = texts[one.period] % {"who": one.label, "ratio": words.percent(one.ratio)}
        yield Said(text=told, href=visit.to("people", actor=one.ref), mark="warn")


def _mover(visit: Visit, mover: Mover) -> Said:
    division = next(each for each in DIVISIONS.values() if each.column == mover.dimension)
    name = mover.key if mover.key is not None else gettext("none")
    difference = words.signed(words.dollars(mover.difference), mover.difference)
    told = {"head": division.head, "name": name, "difference": difference}
    return Said(
        text=gettext("%(head)s %(name)s %(difference)s") % told,
        href=visit.to("spend", **{division.filter: NONE if mover.key is None else mover.key}),
    )


# ---- what else there is to count ---------------------------------------------------------------------------------


def cards(visit: Visit) -> Sequence[Card]:
    summary = spend_summary(visit.selection)
    if not summary.requests:
        return ()
    return [
        Card(label=_("Calls"), value=Said(text=words.number(summary.requests), href=visit.to("usage"))),
        Card(
            label=_("Tokens"),
            value=Said(text=words.short_number(summary.total_tokens), title=words.number(summary.total_tokens)),
            note=_cached(visit, summary.cache_read_tokens),
        ),
        Card(label=_("People"), value=Said(text=words.number(summary.actors), href=visit.to("people"))),
        Card(label=_("Conversations"), value=Said(text=words.number(summary.threads), href=visit.to("threads"))),
    ]


def _cached(visit: Visit, tokens: int) -> str:
    """What came from the cache, and about how much that saved; a loss is not called a saving."""
    if not tokens:
        return ""
    saved = cache_saved(visit.selection)
    if saved is None or saved <= 0:
        return gettext("%(count)s read from cache") % {"count": words.short_number(tokens)}
    told = {"count": words.short_number(tokens), "cost": words.dollars(saved)}
    return gettext("%(count)s read from cache, which saved about %(cost)s") % told


# ---- what it is made of ------------------------------------------------------------------------------------------


def tabs(visit: Visit) -> Sequence[Tab]:
    chosen = division_of(visit)
    return [
        Tab(label=each.label, query=visit.asked.query(by=name) + "#by", chosen=each is chosen)
        for name, each in DIVISIONS.items()
    ]


def division(visit: Visit) -> Table:
    chosen = division_of(visit)
    shares = spend_shares(visit.selection, chosen.column)
    if chosen.filter == "actor":
        visit.names.know({share.key: share.label or "" for share in shares if share.key})
    more = len(shares) - ROWS
    told = ngettext("and %(n)s more", "and %(n)s more", more) % {"n": words.number(more)}
    return Table(
        caption=chosen.label,
        heads=[
            Head(label=chosen.head),
            Head(label=_("cost"), number=True),
            Head(label=_("share"), hidden=True),
            Head(label=_("change"), number=True),
            Head(label=_("calls"), number=True),
            Head(label=_("tokens"), number=True),
            Head(label=_("per call"), number=True),
        ],
        rows=[_share(visit, chosen, share) for share in shares[:ROWS]],
        empty=_("Nothing was used in these days."),
        csv=visit.csv(visit.asked.own.get("by", "model")),
        note=told if more > 0 else "",
    )


def _share(visit: Visit, division: Division, share: Share) -> Row:
    chosen = {division.filter: NONE if share.key is None else share.key}
    name = share.label or (gettext("none") if share.key is None else share.key)
    return Row(
        cells=[
            Cell(text=name, href=visit.to("spend", **chosen), title=share.key or ""),
            Cell(
                text=words.cost(share.cost_nanos, share.unpriced_requests),
                href=visit.to("usage", **chosen),
                title="" if share.cost_nanos is None else words.exact_dollars(share.cost_nanos),
            ),
            Cell(text="", share=share.of_largest),
            Cell(text=words.changed(share.cost)),
            Cell(text=words.number(share.requests)),
            Cell(text=words.short_number(share.total_tokens), title=words.number(share.total_tokens)),
            Cell(text=words.NOTHING if share.per_request_nanos is None else words.dollars(share.per_request_nanos)),
        ]
    )


def dearest_threads(visit: Visit) -> Table:
    return Table(
        caption=_("Most expensive conversations"),
        heads=[
            Head(label=_("conversation")),
            Head(label=_("person")),
            Head(label=_("cost"), number=True),
            Head(label=_("calls"), number=True),
            Head(label=_("tokens"), number=True),
        ],
        rows=[_thread(visit, row) for row in spend_by_thread(visit.selection)],
        empty=_("No conversation was used in these days."),
        csv=visit.csv("threads"),
    )


def _thread(visit: Visit, row: ThreadSpend) -> Row:
    title = words.title(row.title, row.thread_id)
    return Row(
        cells=[
            Cell(text=title, href=visit.url("thread", row.thread_id)),
            Cell(text=visit.names(row.actor_ref), href=visit.to("people", actor=row.actor_ref), title=row.actor_ref),
            Cell(text=words.cost(row.cost_nanos, row.unpriced_requests)),
            Cell(text=words.number(row.requests)),
            Cell(text=words.short_number(row.total_tokens), title=words.number(row.total_tokens)),
        ]
    )
