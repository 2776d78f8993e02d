"""The demo is killed in mid-answer and started again: the answer completes by itself, and stands there once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.demo_site import DemoSite, Event, environment, events, prepare, start
from tests.workers.process import until

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("demo")]

COUNTED = " ".join(str(number) for number in range(1, 21))


def asked_and_killed(site: DemoSite) -> tuple[str, str]:
    """Ask, read until some of the answer was shown, and kill -9; the ids of thread and run."""
    body = {"message": "count to 20 slowly"}
    with site.opened("POST", "/agent/chat", user="alice", body=body) as answer:
        head = answer.readline() + answer.readline() + answer.readline()
        (meta,) = events(head.decode())
        shown = b""
        while b" 5" not in shown:
            shown += answer.readline()
        site.process.kill()
        site.process.communicate()
    assert b" 20" not in shown
    return str(meta.data["threadId"]), str(meta.data["runId"])


def followed(site: DemoSite, run_id: str) -> list[Event]:
    """The whole stream of a run, from its first frame to its end."""
    answer = site.request("GET", f"/agent/chat/{run_id}/stream", user="alice")
    assert answer.status == 200, answer.body
    return list(events(answer.body.decode()))


def text_of(stream: list[Event]) -> str:
    """What a client shows in the end: a step that is told again drops what it had said."""
    text = ""
    for event in stream:
        if event.data.get("kind") in {"step-start", "step-restart"}:
            text = ""
        elif event.data.get("kind") == "text":
            text += str(event.data["text"])
    return text


def test_kill_9_in_mid_answer_and_a_second_start_complete_it_once(demo_database: Callable[[], Path]) -> None:
    database = demo_database()
    env = environment(database)
    first = start(env)
    thread_id, run_id = asked_and_killed(first)

    prepare(env)  # `make demo` again
    second = start(env)
    with closing(sqlite3.connect(database)) as rows:
        settled = "SELECT 1 FROM agent_run WHERE id = ? AND settled_at IS NOT NULL"
        until(lambda: rows.execute(settled, [run_id]).fetchone())  # by itself: nobody has asked this server anything
    stream = followed(second, run_id)
    thread = second.request("GET", f"/agent/threads/{thread_id}", user="alice").json
    again = second.ask("help", threadId=thread_id)
    assert second.finish() in {0, 130}

    assert stream[-1].name == "done"
    assert text_of(stream) == COUNTED
    assert [event.data["kind"] for event in stream if event.data.get("kind") == "step-restart"] == ["step-restart"]
    assert [(message["role"], message["content"]) for message in thread["messages"]] == [
        ("user", "count to 20 slowly"),
        ("assistant", COUNTED),
    ]
    assert again[-1].name == "done"
    assert "Traceback" not in first.output + second.output
    with closing(sqlite3.connect(database)) as rows:
        ledger = rows.execute("SELECT step_key, tokens_source FROM agent_token_usage WHERE run_id = ?", [run_id])
        assert sorted(ledger) == [("llm:0", "reported"), ("llm:0#1.1", "estimated")]
        assert rows.execute(
            "SELECT status, attempt, recoveries, retries FROM agent_run WHERE id = ?", [run_id]
        ).fetchall() == [("completed", 2, 0, 1)]
