"""Sockets under real servers: what SSE shows, asked for and stopped by messages, and nothing for whoever may not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import connection
from websockets.exceptions import InvalidStatus

from agent.models import Message, Run, Thread
from tests.edges.server import Server, serve
from tests.edges.sockets import Phone, Said, frames, phone, session_of, text
from tests.edges.streams import Stream, ask, chat, eventually, hang_up_all

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]

POOLS = 8 + 16  # threads of the agent that keep a connection each
Ring = Callable[..., AbstractContextManager[Phone]]


@pytest.fixture(scope="module", params=["daphne", "uvicorn"])
def server(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any) -> Iterator[Server]:
    with django_db_blocker.unblock(), serve(request.param) as served:
        connection.close()
        yield served


@pytest.fixture(autouse=True)
def alice() -> Iterator[User]:
    yield User.objects.create_user("alice", password="demo")
    hang_up_all()
    # The tables are emptied next, which must not meet a turn that is still being written.
    assert eventually(lambda: not Run.objects.filter(settled_at=None).exists())


@pytest.fixture(autouse=True)
def bob(alice: User) -> User:
    return User.objects.create_user("bob", password="demo")


@pytest.fixture
def ring(server: Server, alice: User) -> Ring:
    session = session_of(alice)

    def ring(**how: Any) -> AbstractContextManager[Phone]:
        return phone(server, how.pop("session", session), **how)

    return ring


def is_over(said: Said) -> bool:
    return said["type"] in {"done", "error"}


def begun(line: Phone, message: str, **fields: object) -> str:
    """Send, and the run that began."""
    meta = line.ask("send", message=message, **fields)
    assert meta["type"] == "meta", meta
    return str(meta["runId"])


def test_a_message_is_answered_as_over_sse(ring: Ring, server: Server) -> None:
    with ring() as line:
        ref = line.say("send", message="order 1042")
        meta, *numbered, done = line.until(is_over)
    run_id = meta["runId"]
    assert meta == {"type": "meta", "ref": ref, "runId": run_id, "threadId": Thread.objects.get().pk}
    assert done == {"type": "done", "runId": run_id}
    replay = Stream(server, "GET", f"/agent/chat/{run_id}/stream").rest()
    assert frames(numbered, run_id) == [(number, frame) for _, number, frame in replay if number]
    assert text(frames(numbered, run_id)) == "It was sent."


def test_each_transport_goes_on_from_a_cursor_of_the_other(ring: Ring, server: Server) -> None:
    with ring() as line:
        run_id = begun(line, "count 60")
        numbered = frames(line.until(is_over), run_id)
        whole = text(numbered)
        assert [number for number, _ in numbered] == list(range(1, len(numbered) + 1))
        for cut in (0, 1, len(numbered) // 2, len(numbered) - 1, len(numbered)):
            over_http = Stream(server, "GET", f"/agent/chat/{run_id}/stream?after={cut}").rest()
            assert numbered[:cut] + [(n, frame) for _, n, frame in over_http if n] == numbered
            line.say("attach", runId=run_id, after=cut)
            assert numbered[:cut] + frames(line.until(is_over), run_id) == numbered
    stored = Message.objects.get(role="assistant").content
    assert whole == stored


def test_a_socket_follows_several_runs_and_lets_one_go(ring: Ring, tmp_path: Path) -> None:
    gates = [tmp_path / "one", tmp_path / "two"]
    with ring() as line:
        first, second = [begun(line, f"hold {gate}") for gate in gates]
        assert line.ask("detach", runId=first)["type"] == "ok"
        gates[0].touch()
        assert eventually(lambda: Run.objects.get(pk=first).status == "completed")
        gates[1].touch()
        said = line.until(is_over)
    assert text(frames(said, second)) == "At last."
    assert frames(said, first) == []
    assert Run.objects.get(pk=first).status == "completed"


def test_a_second_attach_replaces_the_first(ring: Ring, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with ring() as line:
        run_id = begun(line, f"hold {gate}")
        line.until(lambda said: said["type"] == "frame")
        assert line.ask("attach", runId=run_id)["type"] == "meta"
        gate.touch()
        said = line.until(is_over)
        assert [number for number, _ in frames(said, run_id)] == list(range(1, len(frames(said, run_id)) + 1))
        assert line.ask("ping")["type"] == "pong"  # and nothing of the first comes behind
        assert [one for one in line.heard if one["type"] == "done"] == [said[-1]]


def test_a_run_is_stopped_and_its_last_frame_says_so(ring: Ring, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with ring() as line:
        run_id = begun(line, f"hold {gate}")
        line.until(lambda said: said["type"] == "frame")
        assert line.ask("cancel", runId=run_id)["body"] == {"aborted": True}
        if line.heard[-1]["type"] != "done":
            line.until(is_over)
        assert frames(line.heard, run_id)[-1][1] == {"kind": "cancelled"}
        assert line.ask("cancel", runId=run_id)["status"] == 404
    gate.touch()


def test_a_failed_run_ends_with_its_code_instead_of_done(ring: Ring) -> None:
    with ring() as line:
        run_id = begun(line, "fail")
        end = line.until(is_over)[-1]
    assert (end["type"], end["runId"], end["status"], end["code"]) == ("error", run_id, 500, "run_failed")


def test_what_is_anothers_is_403_and_what_is_unknown_404(ring: Ring, server: Server, bob: User) -> None:
    with ring(session=session_of(bob)) as line:
        theirs = {"runId": begun(line, "Hello")}
        line.until(is_over)
    thread = {"threadId": Thread.objects.get().pk}
    with ring() as line:
        for kind, of in (("attach", theirs), ("cancel", theirs), ("watch", thread), ("send", thread)):
            fields = {"message": "Hello"} if kind == "send" else {}
            refused = line.ask(kind, **of, **fields)
            assert (refused["status"], refused["code"]) == (403, "forbidden"), refused
            unknown = line.ask(kind, **dict.fromkeys(of, "nowhere"), **fields)
            assert unknown["status"] == 404, unknown
            assert {refused["type"], unknown["type"]} == {"error"}
        assert line.ask("ping")["type"] == "pong"
    assert Message.objects.count() == 2


REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("cancel", {}, "runId"),
    ("cancel", {"runId": 1}, "runId"),
    ("cancel", {"runId": "x" * 256}, "runId"),
    ("attach", {"runId": "r", "after": -1}, "after"),
    ("attach", {"runId": "r", "after": "1"}, "after"),
    ("attach", {"runId": "r", "after": True}, "after"),
    ("attach", {"runId": "r", "after": 1.0}, "after"),
    ("attach", {"runId": "a\x00b"}, "runId"),
    ("attach", {"runId": "\ud800"}, "runId"),
    ("watch", {"threadId": None}, "threadId"),
    ("send", {}, "message"),
    ("send", {"message": "Hi", "idempotencyKey": "ä"}, "idempotencyKey"),
    ("send", {"message": "Hi", "mode": "later"}, "mode"),
    ("approve", {}, "toolCallId"),
    ("approve", {"proposalId": "p"}, "threadId"),
    ("approve", {"toolCallId": "c", "remember": "yes"}, "remember"),
    ("reject", {"toolCallId": "c", "reason": "x" * 4097}, "reason"),
    ("skip", {"toolCallId": "c", "via": ""}, "via"),
    ("answer", {"toolCallId": "c"}, "answers"),
    ("dance", {}, "type"),
    ("pong", {"ref": 7}, "ref"),
]


def test_what_is_wrong_is_named_and_ends_nothing(ring: Ring) -> None:
    with ring() as line:
        for kind, fields, name in REFUSED:
            ref = line.say(kind, **fields)
            refused = line.hear()
            assert (refused["type"], refused["status"], refused["code"]) == ("error", 400, "invalid_body"), refused
            assert list(refused["fields"]) == [name]
            assert refused.get("ref") == (None if "ref" in fields else ref)
        for raw in ("", "{", "[]", '"x"', "NaN", "[" * 50_000, b"{}"):
            line.connection.send(raw)
            refused = line.hear()
            assert (refused["status"], refused["code"]) == (400, "invalid_body"), raw[:10]
        assert (line.ask("send", message=" ")["code"]) == "empty_message"
        assert (line.ask("send", message="Hi", agent="nobody")["code"]) == "agent_not_found"
        assert line.ask("ping")["type"] == "pong"
    assert not Thread.objects.exists()


def test_decisions_reach_the_flows_and_what_is_to_come_answers_honestly(ring: Ring) -> None:
    with ring() as line:
        for kind in ("approve", "reject"):
            unknown = line.ask(kind, toolCallId="nothing of that name")
            assert (unknown["status"], unknown["code"]) == (404, "not_found")
            proposed = line.ask(kind, proposalId="p", threadId="t")
            assert (proposed["status"], proposed["code"]) == (404, "not_found")
            assert line.ask(kind, proposalId="p", threadId="t", other=1)["status"] == 400
        assert line.ask("skip", toolCallId="c")["status"] == 404
        assert line.ask("answer", toolCallId="c", answers={"0": ["yes"]})["status"] == 404


def test_a_repeated_key_joins_the_first_run_over_either_transport(ring: Ring, server: Server) -> None:
    with ring() as line:
        run_id = begun(line, "Hello", idempotencyKey="k-1")
        first = frames(line.until(is_over), run_id)
        assert begun(line, "Hello", idempotencyKey="k-1") == run_id
        assert frames(line.until(is_over), run_id) == first
        assert line.ask("send", message="Other", idempotencyKey="k-1")["status"] == 422
    again = chat(server, "Hello", **{"Idempotency-Key": "k-1"})
    assert again["X-Agent-Run-Id"] == run_id
    assert Run.objects.count() == 1


def test_a_message_for_a_busy_thread_waits_and_its_run_is_followed_by_its_id(ring: Ring, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with ring() as line:
        meta = line.ask("send", message=f"hold {gate}")
        busy = line.ask("send", regenerate=True, threadId=meta["threadId"])
        assert (busy["type"], busy["status"], busy["code"]) == ("error", 409, "run_active")
        queued = line.ask("send", message="And this", threadId=meta["threadId"])
        assert (queued["type"], queued["queued"], queued["position"]) == ("queued", True, 0)
        assert [item["content"] for item in queued["queue"]["items"]] == ["And this"]
        gate.touch()
        line.until(is_over)
        line.say("attach", runId=queued["messageId"])
        assert text(frames(line.until(is_over), queued["messageId"])) == "Hello there."


def test_a_watched_thread_tells_what_happens_in_another_tab(ring: Ring, server: Server) -> None:
    first = chat(server, "Hello")
    first.rest()
    thread = first["X-Agent-Thread-Id"]
    with ring() as line, ring() as idle:
        assert line.ask("watch", threadId=thread)["type"] == "ok"
        Stream(server, "POST", "/agent/chat", {"message": "More", "threadId": thread}).rest()
        ask(server, "PATCH", f"/agent/threads/{thread}", json.dumps({"title": "Mine"}))
        noticed = line.until(lambda said: said.get("reason") == "title")
        assert noticed == [
            {"type": "thread-changed", "threadId": thread, "reason": reason}
            for reason in ("run-started", "run-settled", "title")  # "queue" only where something waited
        ]
        assert line.ask("unwatch", threadId=thread)["type"] == "ok"
        ask(server, "PATCH", f"/agent/threads/{thread}", json.dumps({"title": "Yours"}))
        assert [line.ask("ping")["type"], idle.ask("ping")["type"]] == ["pong", "pong"]
        assert [said["type"] for said in line.heard[-2:]] == ["ok", "pong"]
        assert [said["type"] for said in idle.heard] == ["pong"]


def test_a_closed_tab_ends_the_follower_and_not_the_run(ring: Ring, server: Server) -> None:
    with ring() as line:
        run_id = begun(line, "count 100")
        line.until(lambda said: said["type"] == "frame")
    assert eventually(lambda: Run.objects.get(pk=run_id).status == "completed")
    assert len(Message.objects.get(role="assistant").content.split()) == 100


@pytest.mark.parametrize("origin", ["https://evil.example", "null", None])
def test_a_page_of_another_site_is_refused_whatever_its_cookie(ring: Ring, origin: str | None) -> None:
    with pytest.raises(InvalidStatus) as refusal, ring(origin=origin):
        pass
    assert refusal.value.response.status_code == 403


@pytest.mark.parametrize("session", [None, "unknown-session-key-000000000000"])
def test_nobody_is_closed_with_4401(ring: Ring, session: str | None) -> None:
    with ring(session=session) as line:
        line.say("send", message="Hello")
        assert line.closed() == 4401
        assert line.heard == []
    assert not Thread.objects.exists()


def test_after_a_logout_nothing_more_is_done(ring: Ring) -> None:
    with ring() as line:
        assert line.ask("ping")["type"] == "pong"
        Session.objects.all().delete()
        line.say("send", message="Hello")
        assert line.closed() == 4401
    assert not Thread.objects.exists()


@pytest.mark.parametrize("how", ["logout", "deactivation", "password"])
def test_who_only_follows_is_looked_at_again(ring: Ring, alice: User, tmp_path: Path, how: str) -> None:
    gate = tmp_path / "gate"
    with ring(path="/ws/quick/") as line:
        begun(line, f"hold {gate}")
        if how == "logout":
            Session.objects.all().delete()
        elif how == "deactivation":
            User.objects.filter(pk=alice.pk).update(is_active=False)
        else:
            alice.set_password("another")
            alice.save()
        assert line.closed() == 4401
    gate.touch()


def test_a_deleted_thread_is_not_shown_on(ring: Ring, server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with ring(path="/ws/quick/") as line:
        run_id = begun(line, f"hold {gate}")
        thread = Thread.objects.get()
        assert line.ask("watch", threadId=thread.pk)["type"] == "ok"
        Thread.objects.filter(pk=thread.pk).update(deleted_at=thread.created_at)
        end = line.until(is_over)[-1]
        assert (end["runId"], end["status"], end["code"]) == (run_id, 404, "stream_not_found")
        assert line.ask("send", message="More", threadId=thread.pk)["status"] == 404
    gate.touch()


def test_a_lost_role_counts_for_the_next_message(ring: Ring, alice: User) -> None:
    alice.groups.add(Group.objects.create(name="finance"))
    with ring() as line:
        begun(line, "Hello", agent="back-office")
        line.until(is_over)
        alice.groups.clear()
        assert line.ask("send", message="Hello", agent="back-office")["status"] == 403


def test_a_silent_socket_is_pinged(ring: Ring) -> None:
    with ring(path="/ws/quick/") as line:
        for _ in range(2):
            assert json.loads(line.connection.recv(timeout=30)) == {"type": "ping"}


def test_a_message_that_is_too_large_closes_with_4413(ring: Ring) -> None:
    with ring() as line:
        padding = "x" * (256 * 1024 - len(json.dumps({"type": "ping", "ref": "1", "pad": ""})))
        assert line.ask("ping", pad=padding)["type"] == "pong"
        line.connection.send("é" * (128 * 1024 + 1))
        assert line.closed() == 4413


def test_more_than_32_unanswered_messages_close_with_4429_and_others_are_served(ring: Ring, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with ring(**{"x-hold": str(gate)}) as held, ring() as other:
        for _ in range(32):
            held.say("ping")
        assert other.ask("watch", threadId="nowhere")["status"] == 404
        gate.touch()
        assert [held.hear()["type"] for _ in range(32)] == ["pong"] * 32
    gate.unlink()
    with ring(**{"x-hold": str(gate)}) as held:
        for _ in range(33):
            held.say("ping")
        assert held.closed() == 4429
        assert held.heard == []
    gate.touch()


def test_who_reads_too_slowly_comes_back_from_the_cursor(ring: Ring) -> None:
    with ring() as line:
        run_id = begun(line, "big 100 100000")
        parts = [line.until(is_over)]
        assert (parts[0][-1]["status"], parts[0][-1]["code"], parts[0][-1]["runId"]) == (503, "use_cursor", run_id)
        line.say("attach", runId=run_id, after=frames(parts[0], run_id)[-1][0])
        parts.append(line.until(is_over))
        assert parts[1][-1]["type"] == "done"
    numbered = [numbered for part in parts for numbered in frames(part, run_id)]
    assert [number for number, _ in numbered] == list(range(1, len(numbered) + 1))
    thought = "".join(frame["text"] for _, frame in numbered if frame["kind"] == "reasoning")
    assert len(thought) == 100 * 100_000 + 99


def test_a_frame_that_no_socket_carries_is_named_and_sse_has_it(ring: Ring, server: Server) -> None:
    with ring() as line:
        run_id = begun(line, "big 1 1100000")
        end = line.until(is_over)[-1]
        assert (end["runId"], end["status"], end["code"]) == (run_id, 413, "too_large")
        assert line.ask("ping")["type"] == "pong"
    whole = Stream(server, "GET", f"/agent/chat/{run_id}/stream").rest()
    assert max(len(frame.get("text", "")) for _, number, frame in whole if number) == 1_100_000
    assert whole[-1][0] == "done"


def test_sockets_hold_no_connection_and_leave_nothing(ring: Ring, server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with ring() as line:
        run_id = begun(line, f"hold {gate}")
        for _ in range(100):
            assert line.ask("attach", runId=run_id)["type"] == "meta"
        assert eventually(lambda: server.open_databases() <= POOLS + 4)
        gate.touch()
        assert line.until(is_over)[-1]["type"] == "done"
