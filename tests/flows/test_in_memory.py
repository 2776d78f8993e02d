"""The kit for hosts' tests: a turn of their own agents without any infrastructure."""

from __future__ import annotations

import pytest

from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, isolated_registry, tool
from agent.testing import run_turn_in_memory


def test_a_turn_runs_without_a_database() -> None:
    with isolated_registry():

        @tool
        def double(number: int) -> int:
            """Twice the number."""
            return 2 * number

        agent(name="sums", prompt="You count.", tools=[double])(type("Sums", (), {}))
        turn = run_turn_in_memory([ScriptedReply(calls=[call("double", number=21)]), "It is 42."], "Twice 21?")
    assert turn.run.status == "completed"
    assert [message.content for message in turn.messages] == ["Twice 21?", "", "It is 42."]
    assert (turn.messages[1].tool_results or [])[0]["output"] == 42
    assert "".join(frame["text"] for frame in turn.frames if frame["kind"] == "text") == "It is 42."
    assert [row.step_key for row in turn.store.usage_of_run(turn.run.id)] == ["llm:0", "llm:1"]


def test_a_turn_that_asks_somebody_is_there_as_far_as_it_came() -> None:
    with isolated_registry():
        agent(name="desk", prompt="p", tools=[], intake={"questions": [{"id": "n", "prompt": "Your name?"}]})(
            type("Desk", (), {})
        )
        turn = run_turn_in_memory(["Hello."])
    assert turn.run.status == "waiting"
    assert [frame["kind"] for frame in turn.frames] == ["tool-input-available", "elicitation"]


def test_agents_that_are_asked_answer_too() -> None:
    with isolated_registry():
        agent(name="clerk", prompt="p", tools=[])(type("Clerk", (), {}))
        agent(name="desk", prompt="p", tools=[], handoffs=["clerk"])(type("Desk", (), {}))
        asks = ScriptedReply(calls=[call("ask_clerk", task="Twice 21?")])
        turn = run_turn_in_memory([asks, "42.", "It is 42."], agent="desk")
    assert turn.run.status == "completed"
    assert (turn.messages[1].tool_results or [])[0]["output"] == {"text": "42."}
    assert turn.messages[-1].content == "It is 42."
    assert [frame["text"] for frame in turn.frames if frame["kind"] == "text" and "parentId" in frame] == ["42."]


def test_a_script_that_runs_out_says_so() -> None:
    with isolated_registry():
        turn = run_turn_in_memory([])
    assert (turn.run.status, turn.run.error_code) == ("failed", "run_failed")
    assert "script" in (turn.run.error_message or "")
    with pytest.raises(IndexError):
        _ = turn.frames[0]
