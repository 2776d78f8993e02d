"""The demo's script: what it understands, and that it never claims more."""

from __future__ import annotations

import pytest

from agent.domain.model_calls import ModelRequest, ShownCall, ShownMessage, ShownResult, ToolSpec
from project.scripted import answer

pytestmark = pytest.mark.once

TOOLS = tuple(
    ToolSpec(name=name, description="", schema={})
    for name in ("look_up_order", "list_customer_orders", "order_history", "refund_order", "ask_stylist")
)


def asked(question: str, tools: tuple[ToolSpec, ...] = TOOLS) -> list[tuple[str, object]]:
    request = ModelRequest(system="", messages=(ShownMessage(role="user", content=question),), tools=tools)
    return [(planned.name, planned.input) for planned in answer(request).calls]


def told(question: str, tools: tuple[ToolSpec, ...] = TOOLS) -> str:
    request = ModelRequest(system="", messages=(ShownMessage(role="user", content=question),), tools=tools)
    return answer(request).text


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("where is order 1042?", [("look_up_order", {"number": 1042})]),
        ("#1042", [("look_up_order", {"number": 1042})]),
        ("1042 and 1043, and 1042 again", [("look_up_order", {"number": 1042}), ("look_up_order", {"number": 1043})]),
        ("What happened to order 1042?", [("order_history", {"number": 1042})]),
        ("list my orders", [("list_customer_orders", {})]),
        ("What have I ordered?", [("list_customer_orders", {})]),
        ("orders of Bruno", [("list_customer_orders", {"customer": "Bruno"})]),
        ("show me Bruno Keller's orders", [("list_customer_orders", {"customer": "Bruno Keller"})]),
        ("orders for Zoë O'Neill?", [("list_customer_orders", {"customer": "Zoë O'Neill"})]),
        ("refund order 1042", [("refund_order", {"number": 1042})]),
        ("what goes with order 1042?", [("ask_stylist", {"task": "What goes with order 1042?"})]),
        ("my lamp cost 89.90", []),
        ("hello", []),
        ("help", []),
        ("what is the meaning of life?", []),
    ],
)
def test_questions_become_calls(question: str, calls: list[tuple[str, object]]) -> None:
    assert asked(question) == calls


def test_at_most_four_orders_at_once() -> None:
    assert len(asked(" ".join(str(number) for number in range(1001, 1020)))) == 4


def test_a_tool_that_is_not_offered_is_not_called() -> None:
    assert asked("where is order 1042?", tools=()) == []
    assert "help" in told("where is order 1042?", tools=())


@pytest.mark.parametrize("question", ["xyzzy", "", "?!", "\ud800", "😀", "a" * 100_000, "order of\n\n", "1042" * 5000])
def test_anything_else_gets_a_sentence_that_says_what_it_can_do(question: str) -> None:
    assert "help" in told(question) or "where is order 1042?" in told(question)


def test_counting_takes_its_time_and_has_an_end() -> None:
    request = ModelRequest(
        system="", messages=(ShownMessage(role="user", content="count to 9999 slowly"),), tools=TOOLS
    )
    reply = answer(request)
    assert reply.delay_ms == 100
    assert reply.text.split()[-1] == "200"


def test_a_result_it_cannot_read_is_an_apology_and_not_a_failure() -> None:
    failed = ShownMessage(
        role="assistant",
        tool_calls=(ShownCall(id="c", name="look_up_order", input={"number": 1}),),
        tool_results=(ShownResult(id="c", name="look_up_order", output=None, failed=True),),
    )
    reply = answer(ModelRequest(system="", messages=(ShownMessage(role="user", content="1"), failed), tools=TOOLS))
    assert "I could not look that up." in reply.text
    assert list(reply.calls) == []
