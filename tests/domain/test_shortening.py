"""Less of a conversation that is too long for its model: as lawful as before, and the question stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.domain.model_calls import ShownCall, ShownMessage, ShownResult
from agent.domain.shortening import shortened


def said(role: str, size: int, *, calls: bool = False) -> ShownMessage:
    made = (ShownCall(id="c", name="look", input="x" * size),) if calls else ()
    results = (ShownResult(id="c", name="look", output="y" * size),) if calls else ()
    return ShownMessage(role=role, content="z" * size, tool_calls=made, tool_results=results)  # type: ignore[arg-type]


SUMMARY, QUESTION = said("system", 9), said("user", 5)


def test_the_older_half_is_left_out_and_the_summary_stays() -> None:
    turns = [said(role, 10) for _ in range(4) for role in ("user", "assistant")]
    assert shortened([SUMMARY, *turns, QUESTION]) == (SUMMARY, *turns[4:], QUESTION)


def test_what_a_tool_gave_counts() -> None:
    turns = [said("user", 10), said("assistant", 100, calls=True), said("user", 10), said("assistant", 10)]
    assert shortened([*turns, QUESTION]) == (*turns[2:], QUESTION)


def test_a_long_question_stays_alone() -> None:
    long = said("user", 1000)
    assert shortened([said("user", 1), said("assistant", 1), said("user", 1), said("assistant", 1), long]) == (long,)


def test_a_question_and_what_came_of_it_cannot_be_shortened() -> None:
    assert shortened([SUMMARY, QUESTION, said("assistant", 500, calls=True)]) is None
    assert shortened([SUMMARY]) is None
    assert shortened([]) is None


shapes = st.tuples(st.sampled_from(["user", "assistant", "system"]), st.integers(0, 30), st.booleans())


@given(st.lists(shapes, max_size=14))
def test_what_is_left_is_an_end_of_it_that_begins_with_a_user(thread: list[tuple[str, int, bool]]) -> None:
    messages = [said(role, size, calls=calls and role == "assistant") for role, size, calls in thread]
    less = shortened(messages)
    told = [message for message in messages if message.role != "system"]
    if less is None:
        assert "user" not in [message.role for message in told[1:]]
        return
    rest = [message for message in less if message.role != "system"]
    assert [message for message in less if message.role == "system"] == [m for m in messages if m.role == "system"]
    assert 0 < len(rest) < len(told)
    assert rest == told[len(told) - len(rest) :]
    assert rest[0].role == "user"
    last = max(place for place, message in enumerate(told) if message.role == "user")
    assert rest[-(len(told) - last) :] == told[last:]
