"""Long threads, and what a turn reads of them."""

from __future__ import annotations

import base64
import json
import random
import time
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connection, transaction

from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage, RecordToolCall
from agent.domain.history import HistoryPolicyContext
from agent.domain.ids import new_id
from agent.domain.windows import window_history
from agent.flows import history
from agent.store import get_store

ACTOR = Actor("alice")
OUTPUT_BYTES = 50_000
WINDOW = 4  # messages
AT_ONCE = 100  # turns of one transaction

_FETCHED = "SELECT COALESCE(SUM(seq_tup_read + COALESCE(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_user_tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One load, looked at more closely than a timed one."""

    messages: int
    bytes: int  # of the payload as JSON
    statements: int
    work: int  # rows that the server fetched (PostgreSQL), steps of its virtual machine (SQLite)

    def to_json(self) -> dict[str, int]:
        return asdict(self)


def seed(turns: int, output_bytes: int = OUTPUT_BYTES) -> str:
    """A thread of that many turns, each with a tool output of that size, and a question that is not answered yet."""
    store, noise = get_store(), random.Random(turns)
    thread_id = store.create_thread(actor=ACTOR).id
    for start in range(0, turns, AT_ONCE):
        with store.atomic():
            for _ in range(start, min(start + AT_ONCE, turns)):
                _turn(thread_id, noise, output_bytes)
    _say(thread_id, "user", "where is order 1042?")
    return thread_id


def settle() -> None:
    """Let the database know what it holds, as its own housekeeping would in time."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def timed(thread_id: str, times: int) -> list[dict[str, float]]:
    """Seconds of each load, and of this process's CPU."""
    samples = []
    for _ in range(times):
        cpu, start = time.process_time(), time.perf_counter()
        _load(thread_id)
        samples.append({"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu})
    return samples


def read(thread_id: str) -> Read:
    """What one load gives, and what it cost the database."""
    statements: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        return execute(sql, params, many, context)

    with transaction.atomic():
        before = _work_so_far()
        with connection.execute_wrapper(note):
            payload = _load(thread_id)
        work = _work_so_far() - before
    return Read(
        messages=len(payload["messages"]),
        bytes=len(json.dumps(payload)),
        statements=len(statements),
        work=work if connection.vendor == "postgresql" else _steps(thread_id),
    )


def size(turns: int, output_bytes: int, window: int) -> int:
    """The bytes of the payload of a window on such a thread."""
    return len(json.dumps(_load(seed(turns, output_bytes), window)))


def _load(thread_id: str, window: int = WINDOW) -> dict[str, Any]:
    context = HistoryPolicyContext(thread_id=thread_id, actor=ACTOR, agent_name=None)
    return history.load(get_store(), window_history(max_messages=window), context)


def _work_so_far() -> int:
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_FETCHED)
        return int(cursor.fetchone()[0])


def _steps(thread_id: str) -> int:
    """How many instructions SQLite ran for a load: the same on every machine, and it grows with every row it visits."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.connection.set_progress_handler(step, 1)
    try:
        _load(thread_id)
    finally:
        connection.connection.set_progress_handler(None, 0)
    return steps


def _turn(thread_id: str, noise: random.Random, output_bytes: int) -> None:
    _say(thread_id, "user", "where is order 1042?")
    call = {"id": new_id(), "providerCallId": "call_1", "name": "look_up", "input": {"number": 1042}, "kind": "read"}
    # text that no database can compress away
    output = {"text": base64.b64encode(noise.randbytes(output_bytes * 3 // 4)).decode()}
    result = {"id": call["id"], "name": call["name"], "output": output}
    message_id = _say(thread_id, "assistant", "I look.", tool_calls=[call], tool_results=[result])
    get_store().record_tool_call(
        RecordToolCall(
            id=str(call["id"]),
            provider_call_id="call_1",
            message_id=message_id,
            thread_id=thread_id,
            run_id=None,
            actor_ref=ACTOR.ref,
            tenant_ref=None,
            agent_name=None,
            tool_name="look_up",
            tool_type="read",
            input=call["input"],
            output=output,
            status="auto_executed",
        )
    )
    _say(thread_id, "assistant", "It left the shop on Monday.")


def _say(thread_id: str, role: str, content: str, **parts: Any) -> str:
    return get_store().append_message(AppendMessage(thread_id=thread_id, role=role, content=content, **parts)).id
