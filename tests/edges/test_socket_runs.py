"""B38: several runs on one socket, several calls at once within one: each frame says whose it is, and in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agent.models import Run
from tests.edges.server import Server, serve
from tests.edges.sockets import Phone, Said, frames, phone, session_of, text
from tests.edges.streams import eventually

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def server(django_db_setup: None, django_db_blocker: Any) -> Iterator[Server]:
    with django_db_blocker.unblock(), serve("uvicorn") as served:
        connection.close()
        yield served


@pytest.fixture
def line(server: Server, transactional_db: None) -> Iterator[Phone]:
    with phone(server, session_of(User.objects.create_user("alice", password="demo"))) as line:
        yield line
    assert eventually(lambda: not Run.objects.filter(settled_at=None).exists())


def over(line: Phone, *run_ids: str) -> list[Said]:
    """All that is said until each of these runs is done."""
    left = set(run_ids)

    def last(said: Said) -> bool:
        if said["type"] in {"done", "error"}:
            left.discard(said["runId"])
        return not left

    return line.until(last)


def test_five_runs_of_a_thread_told_again_at_once_stay_apart(line: Phone) -> None:
    fields: Said = {}
    runs, live = list[str](), dict[str, list[tuple[int, Said]]]()
    for number in range(5):
        meta = line.ask("send", message=f"count {10 + number}" if number % 2 else "order 1042", **fields)
        fields, run_id = {"threadId": meta["threadId"]}, meta["runId"]
        live[run_id] = frames(over(line, run_id), run_id)
        runs.append(run_id)
    for run_id in runs:
        line.say("attach", runId=run_id)
    said = over(line, *runs)
    for run_id in runs:
        again = frames(said, run_id)
        assert [number for number, _ in again] == list(range(1, len(again) + 1))
        assert [frame for _, frame in again if frame["kind"] != "text"] == [
            frame for _, frame in live[run_id] if frame["kind"] != "text"
        ]
        assert text(again) == text(live[run_id])
        assert [one["type"] for one in said if one.get("runId") == run_id][-1] == "done"
    calls = [frame["id"] for run_id in runs for _, frame in frames(said, run_id) if frame["kind"] == "tool-output"]
    assert len(calls) == len(set(calls)) == 3


def test_runs_that_are_being_said_at_once_stay_apart(line: Phone, tmp_path: Path) -> None:
    lengths = (40, 60, 80)
    refs = [line.say("send", message=f"count {length}") for length in lengths]
    metas = {said["ref"]: said["runId"] for said in line.until(lambda _: len(_metas(line)) == len(lengths))
             if said["type"] == "meta"}  # fmt: skip
    runs = [metas[ref] for ref in refs]
    over(line, *[run_id for run_id in runs if not _is_done(line, run_id)])
    for run_id, length in zip(runs, lengths, strict=True):
        told = frames(line.heard, run_id)
        assert text(told) == " ".join(map(str, range(1, length + 1)))
        assert [number for number, _ in told] == list(range(1, len(told) + 1))


def _metas(line: Phone) -> list[Said]:
    return [said for said in line.heard if said["type"] == "meta"]


def _is_done(line: Phone, run_id: str) -> bool:
    return any(said["type"] == "done" and said["runId"] == run_id for said in line.heard)
