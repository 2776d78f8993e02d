"""What follows an answer: follow-ups and an answer in a form of its own, each with its row in the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from agent.domain.model_calls import ModelRequest
from agent.errors import ModelError
from agent.flows.followups import suggestions
from agent.providers.scripted import Answer, ScriptedReply, call
from agent.registry import FollowUps, agent, tool
from agent.store import in_store
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]
QUESTIONS = ["Where is it now?", "When will it come?"]


class Order(BaseModel):
    """What an answer says of an order."""

    number: int
    shipped: bool


def names(desk: Site, run_id: str) -> list[str]:
    """The steps behind the first model call's mark."""
    steps = [step.name for step in desk.steps(run_id)]
    return steps[steps.index("llm:0") :]


def by_purpose(**answers: Answer | list[Answer]) -> Callable[[ModelRequest], Answer]:
    """A script that answers each purpose with its own."""
    kept = {name: list(answer) if isinstance(answer, list) else answer for name, answer in answers.items()}

    def script(request: ModelRequest) -> Answer:
        answer = kept[request.purpose]
        return answer.pop(0) if isinstance(answer, list) else answer

    return script


def declare(**options: Any) -> None:
    agent(name="desk", prompt="p", tools=[], **options)(type("Desk", (), {}))


def test_follow_ups_are_kept_on_the_answer_and_paid_under_their_own_name(site: MakeSite) -> None:
    desk = site(by_purpose(chat="It was shipped.", follow_ups=json.dumps([*QUESTIONS, QUESTIONS[0], "A third?"])))
    declare(follow_ups=FollowUps(count=2))
    run = desk.turn("Where is order 7?")
    assert run.status == "completed"
    answer = desk.messages(run.thread_id)[-1]
    assert (answer.content, answer.follow_ups) == ("It was shipped.", QUESTIONS)
    assert names(desk, run.id) == ["llm:0", "followups:0", "persist:title", "persist:run:end"]
    rows = [(row.step_key, row.purpose, row.message_id) for row in desk.store.usage_of_run(run.id)]
    assert rows == [("llm:0", "chat", answer.id), ("followups:0", "follow_ups", answer.id)]
    asked = desk.provider.requests[-1]
    assert asked.tools == ()
    assert "Where is order 7?" in asked.messages[0].content
    assert "It was shipped." in asked.messages[0].content
    assert [frame.get("kind", "end") for frame in desk.frames(run.id)][-3:] == ["step-finish", "title", "end"]


@pytest.mark.parametrize(
    "said",
    ["None, I think.", '{"items": []}', '["a", 1]', "[", ModelError("gone", status=400), ScriptedReply("")],
)
def test_what_is_no_list_of_questions_gives_none_and_never_fails_the_run(site: MakeSite, said: Answer) -> None:
    desk = site(by_purpose(chat="Yes.", follow_ups=said))
    declare(follow_ups=True)
    run = desk.turn()
    assert run.status == "completed"
    assert desk.messages(run.thread_id)[-1].follow_ups is None
    rows = desk.store.usage_of_run(run.id)
    assert [row.purpose for row in rows] == ["chat", "follow_ups"]


def test_a_list_in_a_code_fence_is_a_list_too() -> None:
    assert suggestions(f"```json\n{json.dumps(QUESTIONS)}\n```") == QUESTIONS
    assert suggestions('["  two\\n lines ", "", " "]') == ["two lines"]


def test_nothing_is_suggested_behind_a_terminal_tool(site: MakeSite) -> None:
    @tool(terminal=True)
    def hand_off() -> str:
        """Hand over."""
        return "done"

    desk = site(by_purpose(chat=ScriptedReply(calls=[call("hand_off")])))
    agent(name="desk", prompt="p", tools=[hand_off], follow_ups=True, output_type=Order)(type("Desk", (), {}))
    run = desk.turn()
    assert run.status == "completed"
    assert [row.purpose for row in desk.store.usage_of_run(run.id)] == ["chat"]


def test_a_structured_answer_stands_as_a_read_that_was_called(site: MakeSite) -> None:
    value = {"number": 7, "shipped": True}
    desk = site(by_purpose(chat="Order 7 was shipped.", structured_output=json.dumps(value), follow_ups="[]"))
    declare(output_type=Order, follow_ups=True)
    run = desk.turn("Where is order 7?")
    assert run.status == "completed"
    assert names(desk, run.id)[:3] == ["llm:0", "structured:0:0", "followups:0"]
    answer = desk.messages(run.thread_id)[-1]
    (made,) = answer.tool_calls or [{}]
    assert (made["name"], made["providerCallId"]) == ("structured_output", f"structured-{run.id}")
    assert answer.tool_results == [{"id": made["id"], "name": "structured_output", "output": value}]
    row = desk.store.get_tool_call(made["id"])
    assert row is not None
    assert (row.status, row.tool_type, row.output) == ("auto_executed", "read", value)
    told = [frame for frame in desk.frames(run.id) if frame.get("id") == made["id"]]
    assert [frame["kind"] for frame in told] == ["tool-input-start", "tool-input-available", "tool-output"]
    asked = desk.provider.requests[1]
    assert (asked.purpose, asked.tools, asked.response_schema) == (
        "structured_output",
        (),
        Order.model_json_schema(),
    )
    usage = desk.store.usage_of_run(run.id)
    assert [(row.step_key, row.purpose) for row in usage[1:]] == [
        ("structured:0:0", "structured_output"),
        ("followups:0", "follow_ups"),
    ]


def test_a_wrong_form_is_repaired_once_and_told_what_is_wrong(site: MakeSite) -> None:
    said: list[Answer] = ['{"number": "seven"}', '{"number": 7, "shipped": false}']
    desk = site(by_purpose(chat="Order 7 was not shipped.", structured_output=said))
    declare(output_type=Order)
    run = desk.turn()
    assert run.status == "completed"
    assert names(desk, run.id)[:3] == ["llm:0", "structured:0:0", "structured:0:1"]
    repaired = desk.provider.requests[-1].messages[0].content
    assert '{"number": "seven"}' in repaired
    assert "shipped is required" in repaired
    assert [row.step_key for row in desk.store.usage_of_run(run.id)] == ["llm:0", "structured:0:0", "structured:0:1"]


def test_an_answer_that_cannot_be_brought_into_its_form_fails_the_run_with_every_call_paid(site: MakeSite) -> None:
    desk = site(by_purpose(chat="Who knows?", structured_output="no"))
    declare(output_type=Order, follow_ups=True)
    run = desk.turn()
    assert (run.status, run.error_code) == ("failed", "structured_output_invalid")
    assert desk.messages(run.thread_id)[-1].content == "Who knows?"
    assert [row.step_key for row in desk.store.usage_of_run(run.id)] == ["llm:0", "structured:0:0", "structured:0:1"]
    assert desk.frames(run.id)[-1]["end"]["code"] == "structured_output_invalid"
    assert desk.store.active_run_for_thread(run.thread_id) is None


def test_a_call_for_a_form_that_breaks_off_is_paid_too(site: MakeSite) -> None:
    desk = site(by_purpose(chat="Yes.", structured_output=ModelError("gone", status=400)))
    declare(output_type=Order)
    run = desk.turn()
    assert (run.status, run.error_code) == ("failed", "run_failed")
    rows = [(row.step_key, row.purpose, row.tokens_source) for row in desk.store.usage_of_run(run.id)]
    assert rows == [("llm:0", "chat", "reported"), ("structured:0:0#1.1", "structured_output", "missing")]


def test_a_cancel_while_follow_ups_are_asked_for_keeps_the_answer(site: MakeSite) -> None:
    async def script(request: ModelRequest) -> Answer:
        if request.purpose == "chat":
            return "Yes."
        await in_store(desk.store.request_cancel, run_id)
        return ScriptedReply(json.dumps(QUESTIONS))

    desk = site(script)
    declare(follow_ups=True)
    run_id = desk.send().run_id
    run = desk.drive(run_id)
    assert run.status == "cancelled"
    assert [message.content for message in desk.messages(run.thread_id)] == ["Hello", "Yes."]
    rows = [(row.step_key, row.purpose) for row in desk.store.usage_of_run(run.id)]
    assert rows == [("llm:0", "chat"), ("followups:0", "follow_ups")]
