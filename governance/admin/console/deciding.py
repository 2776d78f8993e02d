"""Decisions as the forms of the inbox send them: one, or several of which each comes to its own end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.translation import gettext

from agent.domain.decisions import REASON_MAX
from agent.errors import AgentError, Invalid
from governance.admin.console import words
from governance.inbox import Desk, Ruling

VIA = "admin"
ACTS = ("approve", "reject", "succeeded", "failed", "again")
SEVERAL = {"approve-several": "approve", "reject-several": "reject"}
SEVERAL_MOST = 200
REASONS, REASON_SHOWN = 5, 60  # the last reasons of this session, a click away


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Several cards at once, each by its id and the digest of what was shown."""

    act: str
    rulings: Sequence[Ruling]


def ruling_of(request: HttpRequest, subject: str, digest: str | None) -> Ruling:
    """A form that shows a card always sends what it showed."""
    reason = next((text for text in reversed(request.POST.getlist("reason")) if text.strip()), "")
    if not digest:
        raise Invalid.field("digest", "that of the card")
    if len(reason) > REASON_MAX:
        raise Invalid.field("reason", f"at most {REASON_MAX} characters")
    return Ruling(subject=subject, via=VIA, digest=digest, reason=reason.strip(), remember="remember" in request.POST)


def chosen_of(request: HttpRequest, act: str) -> Chosen:
    pairs = [item.partition(" ") for item in dict.fromkeys(request.POST.getlist("item"))]
    if not 1 <= len(pairs) <= SEVERAL_MOST:
        raise Invalid.field("item", f"choose 1 to {SEVERAL_MOST} cards")
    return Chosen(act=act, rulings=[ruling_of(request, subject, digest) for subject, _, digest in pairs])


def done(desk: Desk, act: str, ruling: Ruling) -> str:
    by_act: Mapping[str, Callable[[Ruling], str]] = {"approve": desk.approve, "reject": desk.reject}
    return by_act[act](ruling) if act in by_act else desk.settle(ruling, act)


def told_of_several(desk: Desk, chosen: Chosen) -> dict[str, str]:
    """Each by its own guarded move: what one of them comes to changes nothing for the next."""
    told = {}
    for ruling in chosen.rulings:
        try:
            told[ruling.subject] = done(desk, chosen.act, ruling)
        except AgentError as error:
            told[ruling.subject] = str(error.message)
    return told


def summary(told: Sequence[str]) -> str:
    applied, unchanged = told.count("applied"), told.count("unchanged")
    counts = {"applied": applied, "unchanged": unchanged, "refused": len(told) - applied - unchanged}
    said = {name: words.number(count) for name, count in counts.items()}
    return gettext("%(applied)s decided, %(unchanged)s unchanged, %(refused)s refused") % said


def reasons_of(request: HttpRequest) -> list[tuple[str, str]]:
    """The reasons given last in this session, each whole and as a button shows it."""
    given: list[str] = request.session.get("governance_reasons", [])
    return [(text, text if len(text) <= REASON_SHOWN else f"{text[:REASON_SHOWN]}…") for text in given]


def remember_reason(request: HttpRequest, ruling: Ruling) -> None:
    if ruling.reason:
        before = [text for text in request.session.get("governance_reasons", []) if text != ruling.reason]
        request.session["governance_reasons"] = [ruling.reason, *before][:REASONS]
