"""A process that admits turns and recovers lost ones where workers drive them: `python -m bench.remote`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import django
from django.core.management import call_command

from bench import celery_app

django.setup()

from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent.domain.commands import NewRun
from agent.domain.ids import new_id
from agent.flows import dispatch
from agent.flows.admission import chat
from agent.flows.recovery import redispatch
from agent.flows.starts import Send
from agent.flows.stream import follow
from agent.store import get_store
from bench.agents import SMALL_QUESTION
from bench.turns import ACTOR

REST_SECONDS = 0.02  # between turns: nobody sends the next one in the same instant
SENT_SECONDS = 60


async def _turn() -> dict[str, float]:
    """Milliseconds from the call of `submit` until it answers, its first frame is stored, seen, and the end is seen."""
    clock, start = time.time(), time.perf_counter()
    admitted = await asyncio.to_thread(chat, ACTOR, Send(message=SMALL_QUESTION, agent="bench"))
    returned, first = time.perf_counter(), 0.0
    async for _ in follow(admitted.run_id):
        first = first or time.perf_counter()
    end = time.perf_counter()
    stored = await asyncio.to_thread(_stored_at, admitted.run_id)
    run = await asyncio.to_thread(get_store().get_run, admitted.run_id)
    assert run is not None
    assert run.status == "completed", (run.status, run.error_message)
    times = {"admitted": returned - start, "stored": stored - clock, "seen": first - start, "end": end - start}
    return {name: seconds * 1000 for name, seconds in times.items()}


def _stored_at(run_id: str) -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT min(created_at_ms) FROM agent_stream_frame WHERE run_id = %s", [run_id])
        return float(cursor.fetchone()[0]) / 1000


async def _turns(count: int) -> list[dict[str, float]]:
    found = []
    for _ in range(count):
        found.append(await _turn())
        await asyncio.sleep(REST_SECONDS)
    return found


def _recover(count: int) -> dict[str, float]:
    """Let this many runs lapse, and find them all; seconds until they are handed over, and sent."""
    store = get_store()
    for _ in range(count):
        run_id = new_id()
        store.create_run(NewRun(id=run_id, thread_id=new_id(), actor=ACTOR, input={}, dispatched=True))
        store.claim_run(run_id, "gone", 60)
    store.lapse_leases(["gone"])
    start = time.perf_counter()
    with CaptureQueriesContext(connection) as queries:
        found = redispatch()
    handed_over = time.perf_counter() - start
    assert dispatch.wait(SENT_SECONDS), "the broker did not take them"
    sent = time.perf_counter() - start
    return {"found": found, "statements": len(queries), "handedOver": handed_over, "sent": sent}


def serve() -> None:
    """Make the tables, say hello, and answer until the input ends."""
    call_command("migrate", verbosity=0)
    print(json.dumps({"celery": celery_app.app.main}), flush=True)
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        answer: object = asyncio.run(_turns(asked["turns"])) if asked["do"] == "turns" else _recover(asked["runs"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
