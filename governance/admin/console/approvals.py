"""Approvals: what waits for a person, oldest first, decided in place or several at once; and what was decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from django.contrib import messages
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from agent.api.sse import stream_response
from agent.errors import Conflict, Invalid, NotAllowed, NotFound
from governance.admin.console import words
from governance.admin.console.asked import PLACE
from governance.admin.console.base import Load, Screen, Visit
from governance.admin.console.cards import ApprovalCard, People, pending_card
from governance.admin.console.decided import decided_parts
from governance.admin.console.deciding import (
    ACTS,
    SEVERAL,
    Chosen,
    chosen_of,
    done,
    reasons_of,
    remember_reason,
    ruling_of,
    summary,
    told_of_several,
)
from governance.admin.console.lists import all_of, ask_of, ways
from governance.admin.console.outcomes import is_open, outcome, under_way
from governance.admin.console.parts import Answer, Empty, Pages, Said, Tab
from governance.inbox import Desk, Ruling
from governance.labels import labels
from governance.queries.approval import ApprovalDetail, approval_detail
from governance.queries.decisions import decisions_page
from governance.queries.paging import COUNTED
from governance.queries.records import ApprovalRow, DecisionRow
from governance.queries.values import Page
from governance.queries.waiting import Item, Waiting, approvals_page, listed, read_of, rows_of
from governance.tail import knocks

CARD = "X-Card"  # a header of our own script: answer with this card alone
DECIDED, ME, ALL = "decided", "me", "all"
CHOICES = {"tab": (DECIDED,), "who": (ME, ALL)}
WHERE = ("toolName", "kind")
TOLD = "approval."  # the events that change an inbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """What waits, and the page of it that is shown."""

    all: Waiting
    page: Page[Item]


class ApprovalsScreen(Screen):
    page = "approvals"
    template = "governance/console/approvals.html"
    own = ("tab", "who", *WHERE, *PLACE)
    filters = ("tenantRef", "agent", "actor")
    tables = {
        "approvals": lambda visit: (ApprovalRow, _file(visit)),
        "decisions": lambda visit: (DecisionRow, all_of(_at_desk(visit), decisions_page, WHERE)),
    }

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("events/", view(self.stream_view), name="governance_approvals_events"),
            *super().get_urls(),
            path("<str:subject>/", view(self.detail_view), name="governance_approval"),
        ]

    def chosen_by_days(self, visit: Visit) -> bool:
        return visit.asked.own.get("tab") == DECIDED

    def parts(self, visit: Visit) -> Mapping[str, Load]:
        for name, allowed in CHOICES.items():
            if visit.asked.own.get(name, allowed[0]) not in allowed:
                raise Invalid.field(name, " or ".join(allowed))
        tabs: Mapping[str, Load] = {"tabs": _tabs}
        if self.chosen_by_days(visit):
            return {**tabs, **decided_parts(_at_desk(visit), WHERE)}
        desk = Desk.of(visit.request)
        inbox = cache(partial(_inbox, visit, desk))
        return {
            **tabs,
            "answer": lambda visit: _answer(visit, desk, inbox()),
            "cards": lambda visit: _cards(visit, desk, inbox()),
            "pages": lambda visit: _pages(visit, inbox()),
            "several": lambda visit: desk.permitted,
            "csv": lambda visit: visit.csv("approvals"),
            "reasons": lambda visit: reasons_of(visit.request),
            "stream": lambda visit: visit.url("approvals_events"),
        }

    # ---- one of them --------------------------------------------------------------------------------------------

    def detail_view(self, request: HttpRequest, subject: str) -> HttpResponseBase:
        def page(visit: Visit) -> HttpResponseBase:
            desk = Desk.of(request)
            if CARD in request.headers:
                return self._card(visit, desk, subject)
            card = _card_of(visit, desk, subject)
            parts: Mapping[str, Load] = {"card": lambda visit: card, "reasons": lambda visit: reasons_of(request)}
            return self.show(visit, "governance/console/approval.html", parts, title=card.title, bars=False)

        return self.answered(request, page)

    def _card(
        self, visit: Visit, desk: Desk, subject: str, *, problem: str = "", status: int = 200
    ) -> TemplateResponse:
        """One card for our own script, which puts it in the place of the one before."""
        card = replace(_card_of(visit, desk, subject), problem=problem)
        context = {"card": card, "reasons": reasons_of(visit.request)}
        return TemplateResponse(visit.request, "governance/console/approval_card.html", context, status=status)

    # ---- deciding -----------------------------------------------------------------------------------------------

    def post(self, visit: Visit) -> HttpResponseBase:
        desk, act = Desk.of(visit.request), visit.request.POST.get("act", "")
        if act in ACTS:
            return self._decide(visit, desk, act)
        if act in SEVERAL:
            return self._decide_several(visit, desk, chosen_of(visit.request, SEVERAL[act]))
        raise Invalid.field("act", f"one of {', '.join((*ACTS, *SEVERAL))}")

    def _decide(self, visit: Visit, desk: Desk, act: str) -> HttpResponseBase:
        request = visit.request
        ruling = ruling_of(request, request.POST.get("id", ""), request.POST.get("digest"))
        problem, status = "", 200
        try:
            done(desk, act, ruling)
            remember_reason(request, ruling)
        except (Conflict, Invalid, NotAllowed) as error:
            problem, status = str(error.message), 403 if isinstance(error, NotAllowed) else 409
        if CARD in request.headers:
            return self._card(visit, desk, ruling.subject, problem=problem, status=status)
        told = problem or " ".join(str(each.text) for each in _card_of(visit, desk, ruling.subject).told)
        messages.add_message(request, messages.WARNING if problem else messages.SUCCESS, told)
        return HttpResponseRedirect(visit.url("approvals") + visit.asked.query())

    def _decide_several(self, visit: Visit, desk: Desk, chosen: Chosen) -> HttpResponseBase:
        """The first time it shows exactly what would be decided; with `sure` it decides that and nothing else."""
        sure = "sure" in visit.request.POST
        told = told_of_several(desk, chosen) if sure else {}
        if sure:
            remember_reason(visit.request, chosen.rulings[0])
        cards = [_named(visit, desk, ruling, told.get(ruling.subject, "")) for ruling in chosen.rulings]
        parts: dict[str, Load] = {
            "chosen": lambda visit: chosen,
            "cards": lambda visit: cards,
            "sure": lambda visit: sure,
            "summary": lambda visit: summary(list(told.values())) if sure else "",
            "reasons": lambda visit: reasons_of(visit.request),
        }
        title = gettext("Decided") if sure else gettext("Decide several")
        return self.show(visit, "governance/console/approvals_several.html", parts, title=title, bars=False)

    # ---- news ---------------------------------------------------------------------------------------------------

    def stream_view(self, request: HttpRequest) -> HttpResponseBase:
        """That something was asked or decided, and nothing about it: the page then looks again."""
        return self.answered(request, partial(_stream, request))


def _stream(request: HttpRequest, visit: Visit) -> HttpResponseBase:
    if not isinstance(request, ASGIRequest):
        return HttpResponse(status=204)  # which a browser takes for: do not come again
    return stream_response(request, knocks(Desk.of(request).scope, TOLD))


def _at_desk(visit: Visit) -> Visit:
    return replace(visit, selection=Desk.of(visit.request).seen(visit.selection))


def _file(visit: Visit) -> Iterator[ApprovalRow]:
    desk = Desk.of(visit.request)
    query = partial(approvals_page, owner=desk.owner, decidable=desk.may)
    found: Iterator[ApprovalRow] = all_of(_at_desk(visit), query, WHERE)
    return found


# ---- what waits ------------------------------------------------------------------------------------------------------


def _who(visit: Visit, desk: Desk) -> str:
    """Whose cards are shown: one's own to decide, for who decides; everybody's for who looks on."""
    return visit.asked.own.get("who") or (ME if desk.permitted else ALL)


def _inbox(visit: Visit, desk: Desk) -> Inbox:
    where = {name: visit.asked.own[name] for name in WHERE if name in visit.asked.own}
    found = desk.waiting(visit.selection, where)
    shown = found.mine if _who(visit, desk) == ME else found.items
    return Inbox(all=found, page=listed(shown, ask_of(visit), len(shown), capped=found.capped))


def _tabs(visit: Visit) -> Sequence[Tab]:
    who = DECIDED if visit.asked.own.get("tab") == DECIDED else _who(visit, Desk.of(visit.request))
    ways = [
        (ME, gettext("For you"), visit.asked.query(tab=None, who=ME)),
        (ALL, gettext("All that waits"), visit.asked.query(tab=None, who=ALL)),
        (DECIDED, gettext("Decided"), visit.asked.query(tab=DECIDED, who=None)),
    ]
    return [Tab(label=label, query=query, chosen=name == who) for name, label, query in ways]


def _answer(visit: Visit, desk: Desk, inbox: Inbox) -> Answer | Empty:
    if not inbox.all.items:
        return Empty(why=gettext("Nothing is waiting for a decision."))
    others = len(inbox.all.items) - len(inbox.all.mine)
    rest = ngettext("%(n)s waits for others", "%(n)s wait for others", others) % {"n": words.number(others)}
    everybody = Said(text=rest, href=visit.asked.query(who=ALL))
    told = gettext("Only the oldest %(n)s of a kind are counted.") % {"n": words.number(COUNTED)}
    notes = [Said(text=told)] if inbox.all.capped else []
    return Answer(
        figure=Said(text=words.number(len(inbox.all.mine)), href=visit.asked.query(who=ME)),
        words=[Said(text=gettext("waiting for you")), *_ages(inbox.all.mine)],
        notes=[*notes, *([everybody] if others else [])],
    )


def _ages(mine: Sequence[Item]) -> Iterator[Said]:
    now = timezone.now()
    if mine:
        yield Said(text=gettext("oldest %(span)s") % {"span": words.span(now - mine[0].at)})
    ends = [item.expires_at for item in mine if item.expires_at is not None and item.expires_at > now]
    if ends:
        yield Said(text=gettext("the next runs out in %(span)s") % {"span": words.span(min(ends) - now)}, mark="warn")


def _cards(visit: Visit, desk: Desk, inbox: Inbox) -> Sequence[ApprovalCard]:
    rows = rows_of(inbox.page.rows, visit.selection, None)
    people = People(labels=labels({row.actor_ref for row in rows}))
    looked = read_of(row.run_id for row in rows if row.run_id is not None)
    return [pending_card(visit, desk, row, people, looked) for row in rows]


def _pages(visit: Visit, inbox: Inbox) -> Pages | None:
    return ways(visit, inbox.page) if len(inbox.page.rows) < inbox.page.total else None


# ---- one that is open or over ----------------------------------------------------------------------------------------


def _card_of(visit: Visit, desk: Desk, subject: str) -> ApprovalCard:
    detail = approval_detail(desk.seen(visit.selection), subject)
    acts = [act for act in (detail.decided, *detail.settled) if act is not None]
    people = People(labels=labels({detail.asked.actor_ref, *(act.by for act in acts)}))
    run_id = detail.asked.run_id
    card = pending_card(visit, desk, detail.asked, people, read_of([run_id] if run_id else []))
    return _as_it_stands(card, detail, people)


def _as_it_stands(card: ApprovalCard, detail: ApprovalDetail, people: People) -> ApprovalCard:
    told, open_ = outcome(detail, people), is_open(detail)
    return replace(
        card,
        told=told,
        under_way=under_way(detail),
        decidable=card.decidable and open_,
        hindrance=card.hindrance if open_ else "",
        left=card.left if open_ and not card.unknown else Said(text=""),
    )


def _named(visit: Visit, desk: Desk, ruling: Ruling, told: str) -> ApprovalCard:
    """A chosen card as it stands now, with what was shown; one that is gone or another one by now says so."""
    done = {"applied": "", "unchanged": gettext("It was decided so before: nothing changed.")}
    try:
        card = _card_of(visit, desk, ruling.subject)
    except NotFound:
        raise Invalid.field("item", f"there is nothing of the id {ruling.subject[:80]}") from None
    return replace(card, digest=ruling.digest or "", problem=done.get(told, told))
