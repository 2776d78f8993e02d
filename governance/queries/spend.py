"""What it cost: by every cut, and as one picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from agent.models import Thread
from governance.labels import labels
from governance.queries.selection import Selection
from governance.queries.sums import (
    CUBE,
    DAY,
    Key,
    Sums,
    actor_count,
    dearest_threads,
    margin,
    thread_counts,
    total,
    usage_sums,
)
from governance.queries.values import (
    ActorSpend,
    AgentSpend,
    DaySpend,
    ModelSpend,
    PurposeSpend,
    Spend,
    SpendOverview,
    SpendSummary,
    TenantSpend,
    ThreadSpend,
)
from governance.reading import one_view
from governance.rollups.marks import database

T = TypeVar("T")
S = TypeVar("S", bound=Spend)

TOP_DEFAULT, TOP_MOST = 10, 200
PLAIN = ("requests", "input_tokens", "output_tokens", "cost_nanos", "unpriced_requests", "unpriced_tokens")


def known_cost(sums: Mapping[str, int]) -> int | None:
    """The sum of the costs that are known; None when there are calls and none of them is."""
    if sums["requests"] and sums["requests"] == sums["unpriced_requests"]:
        return None
    return sums["cost_nanos"]


def spend_of(sums: Sums) -> dict[str, Any]:
    """The fields that every cut has."""
    return {name: sums[name] for name in PLAIN} | {"cost_nanos": known_cost(sums)}


def spend_summary(selection: Selection) -> SpendSummary:
    with one_view():
        return _summary(total(usage_sums(selection).values()), selection, thread_counts(selection, by_actor=False))


def spend_by_model(selection: Selection) -> list[ModelSpend]:
    return _by("model_id", ModelSpend, _cut(selection, "model_id"))


def spend_by_agent(selection: Selection) -> list[AgentSpend]:
    return _by("agent_name", AgentSpend, _cut(selection, "agent_name"))


def spend_by_purpose(selection: Selection) -> list[PurposeSpend]:
    return _by("purpose", PurposeSpend, _cut(selection, "purpose"))


def spend_by_tenant(selection: Selection) -> list[TenantSpend]:
    return _by("tenant_ref", TenantSpend, _cut(selection, "tenant_ref"))


def spend_by_actor(selection: Selection) -> list[ActorSpend]:
    with one_view():
        return _by_actor(selection, thread_counts(selection, by_actor=True))


def spend_by_thread(selection: Selection, limit: int = TOP_DEFAULT) -> list[ThreadSpend]:
    """The most expensive conversations that are still there."""
    wanted, looked_at = min(limit, TOP_MOST), TOP_MOST
    with one_view():
        while True:
            ranked = dearest_threads(selection, looked_at)
            found = _still_there(ranked, wanted, text=selection.text)
            if len(found) == wanted or len(ranked) < looked_at:
                return found
            looked_at *= 10  # nearly all of the dearest were deleted


def usage_trend(selection: Selection) -> list[DaySpend]:
    """Every day of the range, also those on which nothing was used."""
    with one_view():
        sums = usage_sums(selection, (DAY,), PLAIN)
    nothing = dict.fromkeys(PLAIN, 0)
    return [_day(day, sums.get((day,), nothing)) for day in selection.range.days()]


def spend_overview(selection: Selection) -> SpendOverview:
    """Every cut in one view: their totals agree to the nano, also while rows are being written."""
    with one_view():
        cube = usage_sums(selection, CUBE)
        threads = thread_counts(selection, by_actor=True)
        cuts = {name: margin(cube, (name,), PLAIN) for name in CUBE}
        return SpendOverview(
            summary=_summary(total(cube.values()), selection, threads),
            by_model=_by("model_id", ModelSpend, cuts["model_id"]),
            by_actor=_by_actor(selection, threads),
            by_agent=_by("agent_name", AgentSpend, cuts["agent_name"]),
            by_purpose=_by("purpose", PurposeSpend, cuts["purpose"]),
            by_tenant=_by("tenant_ref", TenantSpend, cuts["tenant_ref"]),
            trend=usage_trend(selection),
        )


def _summary(sums: Sums, selection: Selection, threads: Mapping[str | None, int]) -> SpendSummary:
    shown = ("requests", "input_tokens", "output_tokens", "cache_write_tokens", "cache_read_tokens")
    return SpendSummary(
        **{name: sums[name] for name in shown},
        total_tokens=sums["input_tokens"] + sums["output_tokens"],
        cost_nanos=known_cost(sums),
        reported_cost_nanos=sums["reported_cost_nanos"],
        estimated_cost_nanos=sums["estimated_cost_nanos"],
        unpriced_requests=sums["unpriced_requests"],
        unpriced_tokens=sums["unpriced_tokens"],
        actors=actor_count(selection) if sums["requests"] else 0,
        threads=sum(threads.values()),
    )


def _cut(selection: Selection, name: str) -> dict[Key, Sums]:
    with one_view():
        return usage_sums(selection, (name,), PLAIN)


def _by(name: str, kind: Callable[..., S], sums: Mapping[Key, Sums]) -> list[S]:
    ranked = sorted(sums.items(), key=_dearest)
    return [kind(**{name: key[0]}, **spend_of(each)) for key, each in ranked]


def _dearest(item: tuple[Key, Sums]) -> tuple[int, bool, str]:
    """Cost descending, then the key ascending; what is absent comes first among equals."""
    key, sums = item
    return -sums["cost_nanos"], key[0] is not None, key[0] or ""


def _by_actor(selection: Selection, threads: Mapping[str | None, int]) -> list[ActorSpend]:
    ranked = sorted(usage_sums(selection, ("actor_ref",), PLAIN).items(), key=_dearest)
    named = labels([key[0] for key, _ in ranked])
    return [
        ActorSpend(
            actor_ref=key[0],
            label=named.get(key[0]),
            requests=sums["requests"],
            total_tokens=sums["input_tokens"] + sums["output_tokens"],
            cost_nanos=known_cost(sums),
            thread_count=threads.get(key[0], 0),
            unpriced_requests=sums["unpriced_requests"],
            unpriced_tokens=sums["unpriced_tokens"],
        )
        for key, sums in ranked
    ]


def _still_there(ranked: Sequence[tuple[Key, Sums]], limit: int, *, text: bool) -> list[ThreadSpend]:
    """The first of a ranking that were not deleted; looked up a batch at a time, which is one as a rule."""
    found: list[ThreadSpend] = []
    for start in range(0, len(ranked), TOP_MOST):
        some = ranked[start : start + TOP_MOST]
        threads = Thread.objects.using(database()).filter(deleted_at=None)
        titles = dict(threads.filter(pk__in=[key[0] for key, _ in some]).values_list("pk", "title"))
        left = [(key, sums) for key, sums in some if key[0] in titles]
        found += [_thread(key, sums, titles[key[0]] if text else None) for key, sums in left]
        if len(found) >= limit:
            break
    return found[:limit]


def _thread(key: Key, sums: Sums, title: str | None) -> ThreadSpend:
    return ThreadSpend(
        thread_id=key[0],
        title=title,
        actor_ref=key[1],
        requests=sums["requests"],
        total_tokens=sums["input_tokens"] + sums["output_tokens"],
        cost_nanos=known_cost(sums),
        unpriced_requests=sums["unpriced_requests"],
    )


def _day(day: Any, sums: Sums) -> DaySpend:  # noqa: ANN401
    return DaySpend(
        day=day,
        total_tokens=sums["input_tokens"] + sums["output_tokens"],
        cost_nanos=known_cost(sums),
        unpriced_requests=sums["unpriced_requests"],
    )
