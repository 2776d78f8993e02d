"""What a provider is shown: whatever the thread looks like, the list is lawful."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.domain.model_calls import ShownMessage
from agent.domain.snapshots import ToolCallOutcome, TurnMessage
from agent.domain.transcript import (
    NEVER_COMPLETED,
    REJECTED,
    Manners,
    dangling_calls,
    lawful,
    repair,
    show,
)

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def message(
    role: str, content: str = "", *, calls: Sequence[str] = (), results: Sequence[str] = (), seq: int = 1
) -> TurnMessage:
    return TurnMessage(
        id=f"m{seq}",
        seq=seq,
        role=role,
        content=content,
        created_at=NOON,
        tool_calls=[{"id": i, "providerCallId": "call_0", "name": "look", "input": {}, "kind": "read"} for i in calls]
        or None,
        tool_results=[{"id": i, "name": "look", "output": {"ok": True}} for i in results] or None,
    )


def outcome(call_id: str, status: str, **fields: object) -> ToolCallOutcome:
    known: dict[str, Any] = {
        "output": None,
        "error": None,
        "decision": None,
        "decision_reason": None,
        "proposal_id": None,
    }
    return ToolCallOutcome(id=call_id, status=status, **{**known, **fields})


def test_a_call_without_a_result_is_named() -> None:
    assert dangling_calls([message("assistant", calls=["a", "b"], results=["a"])]) == ["b"]


def test_a_stored_output_closes_its_call() -> None:
    (mended,) = repair([message("assistant", calls=["a"])], {"a": outcome("a", "auto_executed", output={"n": 1})})
    assert mended.tool_results == [{"id": "a", "name": "look", "output": {"n": 1}}]


def test_a_rejected_call_says_that_a_person_decided() -> None:
    row = outcome("a", "rejected", decision_reason="too much")
    (mended,) = repair([message("assistant", calls=["a"])], {"a": row})
    (result,) = mended.tool_results or []
    assert result["denied"] is True
    assert result["output"] == {"rejected": True, "reason": "too much", "note": REJECTED}


def test_a_call_of_a_killed_worker_is_closed_as_interrupted() -> None:
    (mended,) = repair([message("assistant", calls=["a"])], {"a": outcome("a", "running")})
    assert mended.tool_results == [{"id": "a", "name": "look", "output": None, "error": NEVER_COMPLETED}]


def test_a_result_without_a_call_is_dropped() -> None:
    (mended,) = repair([message("assistant", "Done.", results=["ghost"])], {})
    assert mended.tool_results is None


def test_blank_answers_are_left_out_and_calls_alone_stay() -> None:
    kept = repair([message("assistant", " \n"), message("assistant", calls=["a"], results=["a"])], {})
    assert [entry.tool_calls is not None for entry in kept] == [True]


def test_provider_ids_that_repeat_between_turns_are_told_apart() -> None:
    turns = [message("assistant", calls=[name], results=[name], seq=n) for n, name in enumerate("abc")]
    shown = show(turns)
    assert [entry.tool_calls[0].id for entry in shown] == ["call_0", "call_0-2", "call_0-3"]
    assert all(entry.tool_calls[0].id == entry.tool_results[0].id for entry in shown)


def test_the_first_thing_sent_is_a_users() -> None:
    shown = show([message("system", "earlier"), message("assistant", "Hi"), message("user", "Hello")])
    _, sent = lawful("", shown, Manners())
    assert [entry.role for entry in sent] == ["system", "user"]


def test_system_text_joins_the_head_where_a_provider_asks_for_it() -> None:
    shown = show([message("system", "earlier"), message("user", "Hello")])
    system, sent = lawful("Be kind.", shown, Manners(leading_system_only=True))
    assert (system, [entry.role for entry in sent]) == ("Be kind.\n\nearlier", ["user"])


def test_neighbours_of_one_role_are_joined_where_a_provider_asks_for_it() -> None:
    shown = show([message("user", "One"), message("user", "Two"), message("assistant", "Three")])
    _, sent = lawful("", shown, Manners(alternating_roles=True))
    assert [(entry.role, entry.content) for entry in sent] == [("user", "One\n\nTwo"), ("assistant", "Three")]


@st.composite
def threads(draw: st.DrawFn) -> list[TurnMessage]:
    """Threads with parallel calls, failed, refused, dangling and blank entries, in any order."""
    thread: list[TurnMessage] = []
    for seq in range(draw(st.integers(1, 12))):
        role = draw(st.sampled_from(["user", "assistant", "assistant", "system"]))
        calls = [f"{seq}-{n}" for n in range(draw(st.integers(0, 3)))] if role == "assistant" else []
        results = [call for call in calls if draw(st.booleans())]
        ghosts = ["ghost"] if role == "assistant" and draw(st.booleans()) else []
        content = draw(st.sampled_from(["", " ", "text"])) if role == "assistant" else "text"
        thread.append(message(role, content, calls=calls, results=results + ghosts, seq=seq))
    return [*thread, message("user", "now", seq=99)]


@given(threads(), st.integers(1, 14), st.booleans(), st.booleans())
def test_every_window_of_every_thread_is_lawful(
    thread: list[TurnMessage], window: int, alternating: bool, leading: bool
) -> None:
    kept = repair(thread[-window:], {})
    _, sent = lawful("s", show(kept), Manners(alternating_roles=alternating, leading_system_only=leading))
    ids: set[str] = set()
    for entry in sent:
        assert [call.id for call in entry.tool_calls] == [result.id for result in entry.tool_results]
        assert not ids & {call.id for call in entry.tool_calls}
        ids |= {call.id for call in entry.tool_calls}
        assert entry.role != "assistant" or entry.content.strip() or entry.tool_calls
    told = [entry for entry in sent if entry.role != "system"]
    assert told[0].role == "user"
    assert sent[-1].role == "user"
    if leading:
        assert told == list(sent)
    if alternating:
        assert not any(_same(one, two) for one, two in pairwise(sent))


def _same(one: ShownMessage, two: ShownMessage) -> bool:
    return one.role == two.role and not one.tool_calls
