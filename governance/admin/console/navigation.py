"""The way from screen to screen: those that a person may open, in the order of the console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.admin.console.waiting import waiting_for
from governance.permissions import INBOX, PRICES, RELIABILITY, SPEND


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a screen is called, and the permissions of which one opens it."""

    label: Promise
    opened_by: Sequence[str]


SCREENS: Mapping[str, Place] = {  # in this order everywhere
    "spend": Place(label=_("Spend"), opened_by=(SPEND,)),
    "usage": Place(label=_("Usage rows"), opened_by=(SPEND,)),
    "models": Place(label=_("Models"), opened_by=(SPEND,)),
    "people": Place(label=_("People"), opened_by=(SPEND,)),
    "threads": Place(label=_("Conversations"), opened_by=(SPEND, RELIABILITY)),
    "runs": Place(label=_("Runs"), opened_by=(RELIABILITY,)),
    "approvals": Place(label=_("Approvals"), opened_by=(INBOX,)),
    "tools": Place(label=_("Tools"), opened_by=(RELIABILITY,)),
    "prices": Place(label=_("Prices"), opened_by=(PRICES,)),
    "live": Place(label=_("Live"), opened_by=(RELIABILITY,)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A link to a screen; `badge` is how much there waits for this person."""

    label: Promise
    url: str
    here: bool
    badge: int | None = None


def screens_of(request: HttpRequest, site: str, *, here: str = "") -> list[Way]:
    """The screens that are there and open to this person."""
    ways = []
    for name, place in SCREENS.items():
        if not any(request.user.has_perm(permission) for permission in place.opened_by):
            continue
        try:
            url = reverse(f"admin:governance_{name}", current_app=site)
        except NoReverseMatch:
            continue
        badge = waiting_for(request) if name == "approvals" else None
        ways.append(Way(label=place.label, url=url, here=name == here, badge=badge))
    return ways
