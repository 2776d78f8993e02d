"""The same routes under real servers: frames leave as they come, hanging up stops nothing, streams hold nothing."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from agent.db import REQUEST_THREADS
from agent.flows.following import AHEAD, PACE
from agent.models import Message, Run, Thread
from tests.edges.server import Server, basic, serve
from tests.edges.streams import Stream, ask, chat, eventually, hang_up_all, in_parallel

pytestmark = pytest.mark.django_db(transaction=True)

POOL = 8  # threads of the agent that keep a connection each
OTHERS = 4  # the frames' writer, the listener, the upkeep, what looks for outcomes


@pytest.fixture(scope="module", params=["daphne", "uvicorn"])
def server(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any) -> Iterator[Server]:
    with django_db_blocker.unblock(), serve(request.param) as served:
        connection.close()
        yield served


@pytest.fixture(autouse=True)
def _people() -> Iterator[None]:
    User.objects.create_user("alice", password="demo")
    User.objects.create_user("bob", password="demo")
    yield
    hang_up_all()


def test_meta_leaves_before_the_model_has_said_a_word(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    stream = chat(server, f"hold {gate}", **{"Accept-Encoding": "gzip"})
    assert stream.response.status == 200
    assert stream["Content-Type"] == "text/event-stream; charset=utf-8"
    assert stream["Cache-Control"] == "no-store, no-transform"
    assert stream["X-Accel-Buffering"] == "no"
    assert stream.response.headers.get("Content-Length") is None
    run_id, thread_id = stream["X-Agent-Run-Id"], stream["X-Agent-Thread-Id"]
    assert stream.event() == ("meta", None, {"runId": run_id, "threadId": thread_id})
    status, detail = ask(server, "GET", f"/agent/threads/{thread_id}")
    assert (status, detail["activeRunId"]) == (200, run_id)
    assert [message["role"] for message in detail["messages"]] == ["user"]
    gate.touch()
    events = stream.rest()
    assert "".join(frame["text"] for _, _, frame in events if frame.get("kind") == "text") == "At last."
    assert events[-1] == ("done", None, {})


@pytest.mark.only_on("postgresql")
def test_a_pool_of_connections_serves_turns_and_streams() -> None:
    connection.close()
    with serve("uvicorn", LIVE_POOL="1") as pooled:

        def turn(number: int) -> None:
            said = chat(pooled, f"count {number}")
            texts = [frame["text"] for _, _, frame in said.rest() if frame.get("kind") == "text"]
            assert "".join(texts) == " ".join(map(str, range(1, number + 1)))

        before = pooled.open_databases()  # of other servers of these tests
        in_parallel(turn, range(1, 41))
        assert pooled.open_databases() - before <= 20 + OTHERS
    hang_up_all()


def test_who_never_reads_is_let_go_within_bounds_and_comes_back_from_the_cursor(server: Server) -> None:
    """Whatever the server holds for a client is what the client finds when it reads at last."""
    parts = [chat(server, "big 300 100000")]
    run_id = parts[0]["X-Agent-Run-Id"]
    assert eventually(lambda: Run.objects.get(pk=run_id).status == "completed")
    seen = [parts[0].rest()]
    while seen[-1][-1][0] != "done":
        written = sum(len(json.dumps(data)) for _, _, data in seen[-1])
        assert written < PACE.byte_limit + AHEAD * 101_000, "no more than the limit and what was read ahead"
        last = {"Last-Event-ID": str(seen[-1][-1][1])}
        seen.append(Stream(server, "GET", f"/agent/chat/{run_id}/stream", **last).rest())
    assert len(seen) > 2
    numbered = [(number, frame) for part in seen for _, number, frame in part if number]
    assert [number for number, _ in numbered] == list(range(1, len(numbered) + 1))
    thought = "".join(frame["text"] for _, frame in numbered if frame["kind"] == "reasoning")
    assert len(thought) == 300 * 100_000 + 299


def test_hanging_up_ends_the_follower_and_not_the_run(server: Server) -> None:
    stream = chat(server, "count 120")
    assert [stream.event() for _ in range(3)]
    run_id, thread_id = stream["X-Agent-Run-Id"], stream["X-Agent-Thread-Id"]
    stream.hang_up()
    assert eventually(lambda: Run.objects.get(pk=run_id).status == "completed")
    whole = Stream(server, "GET", f"/agent/chat/{run_id}/stream").rest()
    assert whole[0] == ("meta", None, {"runId": run_id})
    stored = Message.objects.get(thread_id=thread_id, role="assistant").content
    numbers = [number for _, number, _ in whole if number]
    assert numbers == list(range(1, len(numbers) + 1))
    for cut in (1, 2, len(numbers) - 1, len(numbers)):
        rest = Stream(server, "GET", f"/agent/chat/{run_id}/stream", **{"Last-Event-ID": str(cut)}).rest()
        joined = [*whole[1 : cut + 1], *rest[1:]]
        assert "".join(frame["text"] for _, _, frame in joined if frame.get("kind") == "text") == stored


def test_a_reload_in_mid_answer_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first = chat(server, f"hold {gate}")
    first.event()
    first.hang_up()
    again = Stream(server, "GET", f"/agent/chat/{first['X-Agent-Run-Id']}/stream?after=0")
    assert again.event() == ("meta", None, {"runId": first["X-Agent-Run-Id"]})
    gate.touch()
    assert again.rest()[-1] == ("done", None, {})


def test_a_tool_is_called_on_the_way(server: Server) -> None:
    stream = chat(server, "order 1042")
    kinds = [frame.get("kind") for _, _, frame in stream.rest()]
    assert "tool-output" in kinds
    _, detail = ask(server, "GET", f"/agent/threads/{stream['X-Agent-Thread-Id']}")
    assert detail["messages"][-1]["content"] == "It was sent."


def test_open_streams_hold_no_connection_and_followers_that_leave_hold_nothing(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first = chat(server, f"hold {gate}")
    first.event()
    path = f"/agent/chat/{first['X-Agent-Run-Id']}/stream"
    followers = [Stream(server, "GET", path) for _ in range(30)]
    assert all(follower.event() for follower in followers)
    assert eventually(lambda: server.open_databases() <= POOL + 4)
    for follower in followers[:15]:
        follower.hang_up()
    gate.touch()
    assert all(follower.rest()[-1] == ("done", None, {}) for follower in [first, *followers[15:]])


def test_a_crowd_of_requests_shares_a_few_connections(server: Server) -> None:
    first = chat(server, "Hello")
    first.rest()
    path = f"/agent/threads/{first['X-Agent-Thread-Id']}"
    answers: list[tuple[int, Any]] = []

    def rename(number: int) -> None:
        answers.append(ask(server, "PATCH", path, json.dumps({"title": str(number)})))

    # All of them wait for the row: a connection for each would be seen.
    with transaction.atomic():
        Thread.objects.filter(pk=first["X-Agent-Thread-Id"]).update(title="Held")
        crowd = [threading.Thread(target=rename, args=(number,)) for number in range(40)]
        for one in crowd:
            one.start()
        assert eventually(lambda: server.open_databases() >= REQUEST_THREADS)
        assert not eventually(lambda: server.open_databases() > POOL + REQUEST_THREADS + OTHERS, seconds=1)
    for one in crowd:
        one.join()
    assert answers == [(200, {"ok": True})] * 40


def test_a_streamed_body_is_read_and_a_large_one_refused(server: Server) -> None:
    def chunks(body: bytes) -> Iterator[bytes]:
        for start in range(0, len(body), 65536):
            yield body[start : start + 65536]

    body = json.dumps({"message": "x" * 1_100_000}).encode()
    status, answer = ask(server, "POST", "/agent/chat", chunks(body), **{"Transfer-Encoding": "chunked"})
    assert (status, answer["code"]) == (413, "too_large")
    status, answer = ask(server, "POST", "/agent/chat", body)
    assert (status, answer["code"]) == (413, "too_large")
    assert not Thread.objects.exists()
    small = chunks(b'{"message": " "}')
    status, answer = ask(server, "POST", "/agent/chat", small, **{"Transfer-Encoding": "chunked"})
    assert (status, answer["code"]) == (400, "empty_message")


@pytest.mark.parametrize("path", ["%00", "%ED%A0%80", "%FF", "a%2Fb", "x" * 3000, "%F0%9F%98%80"])
def test_odd_paths_are_404_under_every_server(server: Server, path: str) -> None:
    with contextlib.closing(server.connect()) as connected:
        connected.request("GET", f"/agent/threads/{path}", headers=basic("alice"))
        with connected.getresponse() as response:
            assert response.status == 404


def test_errors_before_the_first_byte_are_json(server: Server) -> None:
    assert ask(server, "GET", "/agent/chat/unknown/stream", Accept="text/event-stream")[1]["code"] == "stream_not_found"
    stream = chat(server, "Hello")
    stream.rest()
    other = ask(server, "GET", f"/agent/chat/{stream['X-Agent-Run-Id']}/stream", **basic("bob"))
    assert (other[0], other[1]["code"]) == (403, "forbidden")
    nobody = ask(server, "GET", "/agent/threads", Authorization="")
    assert (nobody[0], nobody[1]["code"]) == (401, "not_authenticated")


def test_nobody_is_shown_anothers_state(server: Server) -> None:
    users = [User.objects.create_user(f"user-{number}", password="demo") for number in range(10)]
    told: dict[str, object] = {}

    def talk(user: User) -> None:
        stream = chat(server, "order 1042", **basic(user.username))
        outputs = [frame["output"] for _, _, frame in stream.rest() if frame.get("kind") == "tool-output"]
        told[str(user.pk)] = outputs[0]["for"]

    in_parallel(talk, users)
    assert told == {ref: ref for ref in told}
    assert len(told) == 10


def test_twenty_sends_at_once_start_one_run_and_the_others_wait_in_order(server: Server, tmp_path: Path) -> None:
    first = chat(server, "Hello")
    first.rest()
    gate = tmp_path / "gate"
    body = {"message": f"hold {gate}", "threadId": first["X-Agent-Thread-Id"]}
    statuses: list[int] = []
    streams: list[Stream] = []

    def send(_: int) -> None:
        stream = Stream(server, "POST", "/agent/chat", body)
        streams.append(stream)
        statuses.append(stream.response.status)

    in_parallel(send, range(20))
    queued = [json.loads(stream.response.read()) for stream in streams if stream.response.status == 202]
    gate.touch()
    for stream in streams:
        stream.response.read()
    assert sorted(statuses) == [200] + [202] * 19
    assert sorted(each["position"] for each in queued) == list(range(19))
    assert eventually(lambda: Run.objects.filter(status="completed").count() == 21)
    assert Message.objects.filter(role="user").count() == 21
    in_order = [each["messageId"] for each in sorted(queued, key=lambda each: each["position"])]
    assert list(Run.objects.order_by("created_at").values_list("pk", flat=True))[2:] == in_order
