"""The window keeps the newest messages that fit, and the newest one whatever the limits say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.domain.actor import Actor
from agent.domain.history import (
    HistoryPolicyContext,
    HistorySelection,
    bound_problems,
    estimate_message_tokens,
    read_limit,
    select_history,
)
from agent.domain.snapshots import TurnMessage
from agent.domain.windows import UNBOUNDED, History, as_policy, window_history
from agent.errors import RunFailed

CONTEXT = HistoryPolicyContext(thread_id="t", actor=Actor("alice"), agent_name=None)
BOUNDS = st.one_of(st.none(), st.integers(1, 12))


def message(number: int, content: str = "x", **fields: Any) -> TurnMessage:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return TurnMessage(id=f"m{number}", seq=number, role="user", content=content, created_at=moment, **fields)


def thread(*sizes: int) -> tuple[TurnMessage, ...]:
    """Messages whose estimates are these sizes."""
    return tuple(message(number, "x" * (4 * (size - 4))) for number, size in enumerate(sizes))


def kept(messages: Sequence[TurnMessage], max_messages: int | None = None, max_tokens: int | None = None) -> list[int]:
    return [each.seq for each in window_history(max_messages, max_tokens).select(messages, CONTEXT).keep]


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        ("", 4),
        ("a", 5),
        ("abcd", 5),
        ("abcde", 6),
        ("é", 5),  # two bytes
        ("你好吗", 7),  # nine bytes
        ("👩‍👩‍👧", 9),  # eighteen bytes
        ("\ud800", 5),  # a lone surrogate counts, and does not fail
    ],
)
def test_text_is_estimated_by_its_bytes(content: str, tokens: int) -> None:
    assert estimate_message_tokens(message(1, content)) == tokens


def test_calls_and_results_count_in_their_compact_unescaped_form_and_nothing_else_does() -> None:
    calls = [{"id": "1", "name": "f", "input": {"a": "é"}}]
    text = '[{"id":"1","name":"f","input":{"a":"é"}}]'
    plain = estimate_message_tokens(message(1, text))
    assert estimate_message_tokens(message(1, "", tool_calls=calls)) == plain
    assert estimate_message_tokens(message(1, "", tool_results=calls)) == plain
    assert estimate_message_tokens(message(1, "", attachments=[{"name": "x" * 4000}])) == 4


@pytest.mark.parametrize(
    ("sizes", "bounds", "seqs"),
    [
        ([], {}, []),
        ([], {"max_messages": 3}, []),
        ([5, 5, 5], {}, [0, 1, 2]),
        ([5, 5, 5], {"max_messages": 2}, [1, 2]),
        ([5, 5, 5], {"max_messages": 3}, [0, 1, 2]),
        ([5, 5, 5], {"max_tokens": 10}, [1, 2]),
        ([5, 5, 5], {"max_tokens": 9}, [2]),
        ([5, 5, 5], {"max_tokens": 15}, [0, 1, 2]),
        ([5, 5, 50], {"max_tokens": 1}, [2]),  # the newest stays
        ([5, 5, 50], {"max_tokens": 54}, [2]),
        ([5, 5, 50], {"max_tokens": 55}, [1, 2]),
        ([5, 50, 5, 5], {"max_tokens": 20}, [2, 3]),  # stops before the first that is too much, for good
        ([5, 5, 5, 5], {"max_messages": 3, "max_tokens": 10}, [2, 3]),
        ([5, 5, 5, 5], {"max_messages": 1, "max_tokens": 10}, [3]),
        ([5, 5], {"max_messages": 0}, [1]),  # a bound that a check refuses still sends something
    ],
)
def test_the_tighter_bound_wins(sizes: list[int], bounds: dict[str, int], seqs: list[int]) -> None:
    assert kept(thread(*sizes), **bounds) == seqs


def test_the_estimate_may_be_replaced() -> None:
    window = window_history(max_tokens=2, estimate=lambda _: 1)
    assert [each.seq for each in window.select(thread(5, 50, 500), CONTEXT).keep] == [1, 2]


@given(st.lists(st.integers(4, 40), max_size=15), BOUNDS, st.one_of(st.none(), st.integers(1, 200)))
@settings(max_examples=60)
def test_a_window_parts_the_thread_in_two_and_fits(
    sizes: list[int], max_messages: int | None, max_tokens: int | None
) -> None:
    messages = thread(*sizes)
    window = window_history(max_messages, max_tokens)
    selection = select_history(window, messages, CONTEXT)
    assert (*selection.drop, *selection.keep) == messages
    if not messages:
        return
    assert selection.keep[-1] == messages[-1]
    older = selection.keep[:-1]
    assert max_messages is None or len(selection.keep) <= max_messages
    assert max_tokens is None or not older or sum(map(estimate_message_tokens, selection.keep)) <= max_tokens
    if selection.drop:  # one more would not have fitted
        more = (selection.drop[-1], *selection.keep)
        over = max_tokens is not None and sum(map(estimate_message_tokens, more)) > max_tokens
        assert over or (max_messages is not None and len(more) > max_messages)


@given(st.lists(st.integers(4, 40), max_size=15), st.integers(1, 8), st.one_of(st.none(), st.integers(1, 200)))
@settings(max_examples=40)
def test_a_bounded_read_is_all_that_a_counting_window_sees(sizes: list[int], limit: int, tokens: int | None) -> None:
    messages, window = thread(*sizes), window_history(limit, tokens)
    read = read_limit(window)
    assert read == limit
    assert window.select(messages[-read:], CONTEXT).keep == window.select(messages, CONTEXT).keep


def test_what_a_host_declares_becomes_a_policy() -> None:
    assert as_policy(History(max_messages=3)) == window_history(3)
    assert as_policy(UNBOUNDED) is UNBOUNDED
    assert read_limit(UNBOUNDED) is None
    assert read_limit(window_history(0)) == 1


def test_windows_that_choose_alike_have_one_fingerprint() -> None:
    assert window_history(3, 9).fingerprint == window_history(3, 9).fingerprint
    others = {window_history(*bounds).fingerprint for bounds in ((3, 9), (9, 3), (3, None), (None, 3))}
    assert len({*others, window_history(3, 9, estimate=lambda _: 1).fingerprint}) == 5


@pytest.mark.parametrize("bound", [0, -1, 1.5, "3", True])
@pytest.mark.parametrize("name", ["max_messages", "max_tokens"])
def test_a_bound_that_is_no_positive_whole_number_is_named(name: str, bound: Any) -> None:
    (problem,) = bound_problems(History(**{name: bound}))
    assert problem.startswith(f"{name} is {bound!r}")


def test_a_summarizer_that_is_none_is_named() -> None:
    (problem,) = bound_problems(History(max_messages=3, summarize="yes"))  # type: ignore[arg-type]
    assert problem == "summarize is 'yes': True, False or a summarizer"
    assert not bound_problems(History(max_messages=3, summarize=True))


def test_lawful_bounds_and_policies_without_any_have_no_problems() -> None:
    assert bound_problems(History()) == bound_problems(History(max_messages=1, max_tokens=1)) == []
    assert bound_problems(None) == bound_problems(FirstAndNewest()) == []


class FirstAndNewest:
    """The first message and the newest two, and what the test adds to it."""

    def __init__(self, *more: TurnMessage) -> None:
        self._more = more

    def select(self, messages: Sequence[TurnMessage], context: HistoryPolicyContext) -> HistorySelection:
        return HistorySelection(keep=(messages[0], *messages[-2:], *self._more), drop=tuple(messages[1:-2]))


def test_an_own_policy_may_keep_what_it_likes() -> None:
    selection = select_history(FirstAndNewest(), thread(5, 5, 5, 5, 5), CONTEXT)
    assert [each.seq for each in selection.keep] == [0, 3, 4]


@pytest.mark.parametrize("extra", [message(99), message(0, "another text"), message(4, "x" * 4), message(1, "x" * 4)])
def test_a_policy_that_invents_changes_or_repeats_a_message_fails_the_run(extra: TurnMessage) -> None:
    with pytest.raises(RunFailed) as failed:
        select_history(FirstAndNewest(extra), thread(5, 5, 5, 5, 5), CONTEXT)
    assert failed.value.code == "run_failed"
