"""Live: the state at one look, and the events of one's tenants while one looks."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from agent import signals
from agent.signals import Event
from governance.tail import tail
from tests.console.conftest import SignIn
from tests.console.pages import text
from tests.governance.rows import run

LIVE = "/admin/governance/live/"


@pytest.fixture
def operator(staff: SignIn) -> Client:
    return staff("governance.view_reliability")


@pytest.mark.django_db
def test_it_counts_what_is_open_now_whatever_the_days(operator: Client) -> None:
    open_run: dict[str, Any] = {"settled_at": None, "duration_ms": None}
    run(status="running", **open_run)
    run(status="waiting", **open_run)
    run(status="queued", started_at=None, **open_run)
    run()
    page = text(operator, LIVE, fromDay="2026-01-01", toDay="2026-01-01")
    assert "1 running now, 1 wait for a person, 1 for a worker" in page


@pytest.mark.django_db
def test_nothing_running_is_said(operator: Client) -> None:
    assert "Nothing is running." in text(operator, LIVE)


@pytest.mark.django_db
def test_a_server_that_cannot_stream_says_do_not_come_again(operator: Client) -> None:
    assert operator.get(LIVE + "events/").status_code == 204


@pytest.mark.django_db
def test_the_stream_is_for_who_may_see_the_page(staff: SignIn) -> None:
    assert staff("governance.view_spend").get(LIVE + "events/").status_code == 403
    assert connection.vendor


@pytest.mark.django_db
def test_the_api_streams_to_who_may_and_says_where_it_cannot(operator: Client, staff: SignIn) -> None:
    assert operator.get("/governance/api/stream").status_code == 501
    assert staff("governance.view_spend").get("/governance/api/stream").status_code == 403
    assert Client().get("/governance/api/stream").status_code == 401


def told(tenant: str | None) -> None:
    payload = {"runId": "r1", "tenantRef": tenant}
    signals.send(Event(event="run.started", ts=timezone.now(), payload=payload))


async def heard(scope: Collection[str | None] | None, *tenants: str | None) -> list[Any]:
    """What a watcher hears until a second of silence, of events that arise on another thread."""
    watching = tail(scope, silence=1)
    news: list[Any] = []

    async def watch() -> None:
        async for one in watching:
            if one is None:
                return
            news.append(one["payload"]["tenantRef"])

    task = asyncio.create_task(watch())
    while not signals.happened.receivers:
        assert not task.done(), "it stopped listening before it began"
        await asyncio.sleep(0)
    for tenant in tenants:
        await asyncio.to_thread(told, tenant)
    await task
    await watching.aclose()
    return news


@pytest.mark.parametrize(
    ("scope", "expected"),
    [(None, ["north", "south", None]), (["north"], ["north"]), (["south", None], ["south", None]), ([], [])],
    ids=["all", "one", "one-and-none", "nobody"],
)
def test_a_watcher_hears_its_own_tenants(scope: Collection[str | None] | None, expected: list[str | None]) -> None:
    assert asyncio.run(heard(scope, "north", "south", None)) == expected
    assert not signals.happened.receivers
