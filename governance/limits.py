"""How much of people's limits is used, for the console and its API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from agent.actors import DjangoBackgroundResolver
from agent.conf import agent_settings
from agent.domain.actor import Actor
from agent.errors import NotFound
from agent.models.tenants import Tenants
from agent.spi import QuotaPolicy
from governance.days import DayRange, today
from governance.queries.changes import spend_shares
from governance.queries.selection import Selection

LOOKED_AT = 5  # people


@dataclass(frozen=True, slots=True, kw_only=True)
class NearLimit:
    """Somebody who is about to reach a limit, or (`ratio` None) has."""

    ref: str
    label: str
    period: str  # day or month
    ratio: Fraction | None


def near_limits(selection: Selection) -> list[NearLimit]:
    """Of the people who use most today those who are warned or held by a limit; nothing where no quota is set."""
    if agent_settings().quota is None:
        return []
    now = today(selection.range.zone)
    day = selection.during(DayRange(first=now, last=now, zone=selection.range.zone))
    return [one for share in spend_shares(day, "actor_ref")[:LOOKED_AT] for one in _near(share.key, share.label, day)]


def _near(ref: str | None, label: str | None, selection: Selection) -> Iterator[NearLimit]:
    try:
        report = report_of(str(ref), selection.tenants)
    except NotFound:  # who is of another tenant by now
        return
    for word in ("blocked", "warning"):
        if word in report:
            ratio = Fraction(report[word]["ratio"]).limit_denominator(1000) if word == "warning" else None
            yield NearLimit(ref=str(ref), label=label or str(ref), period=report[word]["period"], ratio=ratio)


def report_of(ref: str, tenants: Tenants) -> Mapping[str, Any]:
    """The report of a person, empty where no quota is set; `NotFound` for one of another tenant."""
    if agent_settings().quota is None:
        return {"windows": []}
    actor = _actor(ref)
    if tenants is not None and actor.tenant_ref not in tenants:
        raise NotFound
    return cast("QuotaPolicy", agent_settings().quota_policy).report(actor)


def _actor(ref: str) -> Actor:
    """Who that is now; somebody whom the site's resolver does not know has the limits of no role."""
    resolver = agent_settings().background_actor_resolver
    found = cast("DjangoBackgroundResolver", resolver).resolve(ref, None)
    return found or Actor(ref)
