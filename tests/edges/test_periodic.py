"""What has to be done from time to time is done by the serving process, where there is no Celery and no command."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from agent.domain.actor import Actor
from agent.flows.admission import chat
from agent.flows.starts import Send
from agent.models import IdempotencyKey, Run, RunStep, StreamFrame
from agent.store import get_store
from agent.testing import held_runner
from governance.models import RollupDay
from governance.rollups import check
from tests.edges.server import serve
from tests.edges.streams import ask, eventually
from tests.governance import rows

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]
LONG_AGO = timedelta(days=40)


@pytest.fixture
def left_behind(settings: Any) -> str:
    """A turn that nobody took up, and what a site leaves that was shut for forty days."""
    settings.AGENT = {"PROVIDERS": {"scripted": "tests.edges.live.model.provider"}}
    ana = Actor(str(User.objects.create_user("alice", password="demo").pk))
    then = timezone.now() - LONG_AGO
    old = rows.run(then)
    RunStep.objects.create(run=old, position=0, name="llm:0", payload="{}", created_at=then)
    StreamFrame.objects.create(run_id=old.pk, seq=1, frame="{}\n", created_at_ms=int(then.timestamp() * 1000))
    IdempotencyKey.objects.create(actor_ref=ana.ref, key="old", fingerprint="0" * 64, outcome={}, created_at=then)
    for days in range(2, 6):
        rows.entry(timezone.now() - timedelta(days=days))
    with held_runner():
        return chat(ana, Send(message="Hello", idempotency_key="today")).run_id


def done(run_id: str) -> dict[str, bool]:
    run = get_store().get_run(run_id)
    built = RollupDay.objects.filter(kind="usage", state="clean").count()
    return {
        "the turn": run is not None and run.status == "completed",
        "old journals": not RunStep.objects.exclude(run_id=run_id).exists(),
        "old streams": not StreamFrame.objects.exclude(run_id=run_id).exists(),
        "old keys": [*IdempotencyKey.objects.values_list("key", flat=True)] == ["today"],
        "rollups": built >= 4 and not list(check()),
    }


@pytest.mark.parametrize("kind", ["daphne", "uvicorn"])
def test_a_serving_process_does_all_of_it_by_itself(left_behind: str, kind: str) -> None:
    assert not any(done(left_behind).values())
    with serve(kind) as server:
        connection.close()
        # A server without lifespan events begins with its first request.
        assert ask(server, "GET", "/agent/config")[0] == 200
        assert eventually(lambda: all(done(left_behind).values()), seconds=15), done(left_behind)
    assert Run.objects.count() == 2
