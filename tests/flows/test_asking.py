"""The model asks the user, the turn waits, and what nobody said is what was offered as the default."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.actor import Actor
from agent.domain.model_calls import ModelRequest
from agent.errors import AlreadyDecided, Invalid, NotAllowed, NotQuestion
from agent.flows import approvals
from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, ask, isolated_registry, registry, tool
from tests.flows.acting import Acting, calls_of, cancel_call, frame_of, kinds
from tests.flows.conftest import ALICE, Site

SIZE = {
    "id": "size",
    "prompt": "Which size?",
    "options": [{"value": "s", "label": "Small"}, {"value": "l", "label": "Large"}],
    "defaults": ["s"],
}
NOTE = {"id": "note", "prompt": "Anything else?"}
Asks = Callable[..., Site]


@pytest.fixture
def asks(site: Any) -> Asks:
    """A site whose model asks these questions and then thanks."""

    def make(*questions: dict[str, Any], allow: bool = True, **settings: Any) -> Site:
        agent(name="desk", prompt="p", tools=[], allow_ask=allow)(type("Desk", (), {}))

        def script(request: ModelRequest) -> ScriptedReply:
            if request.messages[-1].tool_results:
                return ScriptedReply("Thank you.")
            return ScriptedReply(calls=[call("ask", "q", questions=list(questions))])

        return site(script, **settings)  # type: ignore[no-any-return]

    return make


def waiting(desk: Site) -> tuple[str, str, str]:
    run = desk.turn("A lamp, please.")
    assert run.status == "waiting", run.error_message
    (row,) = calls_of(desk, run.thread_id)
    return run.id, run.thread_id, row.id


def output(desk: Site, run_id: str, thread_id: str) -> dict[str, Any]:
    """What the model was told, once the turn went on."""
    assert desk.drive(run_id).status == "completed"
    (result,) = desk.messages(thread_id)[1].tool_results or []
    (row,) = calls_of(desk, thread_id)
    assert row.output == result["output"]
    return dict(result["output"])


def test_a_question_is_a_call_that_only_the_user_settles(asks: Asks) -> None:
    desk = asks(SIZE, NOTE)
    run_id, thread_id, call_id = waiting(desk)
    (row,) = calls_of(desk, thread_id)
    assert (row.tool_name, row.tool_type, row.approver, row.expires_at) == ("ask", "action", "requester", None)
    shown = frame_of(desk, run_id, "elicitation")
    assert shown["id"] == call_id
    assert [each["id"] for each in shown["request"]["questions"]] == ["size", "note"]
    assert frame_of(desk, run_id, "tool-input-available")["toolKind"] == "action"
    with pytest.raises(NotAllowed):
        approvals.answer(Actor("stranger"), call_id, {})


def test_answers_are_told_with_the_defaults_of_what_was_left_out(asks: Asks) -> None:
    desk = asks(SIZE, NOTE)
    run_id, thread_id, call_id = waiting(desk)
    approvals.answer(ALICE, call_id, {"note": ["In red."]}, via="app")
    (row,) = calls_of(desk, thread_id)
    assert (row.status, row.decision, row.answers) == ("executed", "answered", {"note": ["In red."]})
    assert output(desk, run_id, thread_id) == {
        "answers": {"size": ["s"], "note": ["In red."]},
        "skipped": False,
        "defaulted": ["size"],
        "summary": "Which size? Small\nAnything else? In red.",
        "answeredBy": "alice",
        "answeredVia": "app",
    }
    assert kinds(desk, run_id, "elicitation", "tool-output", "approval-settled") == ["elicitation", "tool-output"]


@pytest.mark.parametrize("decide", [approvals.skip, approvals.reject])
def test_a_question_that_is_skipped_tells_what_is_assumed(asks: Asks, decide: Callable[..., None]) -> None:
    desk = asks(SIZE)
    run_id, thread_id, call_id = waiting(desk)
    decide(ALICE, call_id)
    (row,) = calls_of(desk, thread_id)
    assert (row.status, row.decision) == ("rejected", "skipped")
    told = output(desk, run_id, thread_id)
    assert (told["skipped"], told["answers"], told["defaulted"]) == (True, {"size": ["s"]}, ["size"])


def test_to_approve_a_question_is_to_take_every_default(asks: Asks) -> None:
    desk = asks(SIZE)
    run_id, thread_id, call_id = waiting(desk)
    approvals.approve(ALICE, call_id)
    told = output(desk, run_id, thread_id)
    assert (told["skipped"], told["answers"], told["defaulted"]) == (False, {"size": ["s"]}, ["size"])


def test_answers_that_do_not_fit_leave_the_question_open(asks: Asks) -> None:
    desk = asks(SIZE)
    run_id, thread_id, call_id = waiting(desk)
    with pytest.raises(Invalid):
        approvals.answer(ALICE, call_id, {"size": ["m"]})
    (row,) = calls_of(desk, thread_id)
    assert row.decision is None
    approvals.answer(ALICE, call_id, {"size": ["l"]})
    approvals.answer(ALICE, call_id, {"size": ["s"]})  # the first one stands
    with pytest.raises(AlreadyDecided):
        approvals.skip(ALICE, call_id)
    assert output(desk, run_id, thread_id)["answers"] == {"size": ["l"]}


def test_a_question_that_nobody_answers_in_time_expires(asks: Asks) -> None:
    desk = asks(SIZE, ASK_TTL_SECONDS=60)
    run_id, thread_id, _ = waiting(desk)
    desk.store.clock = lambda: timezone.now() + timedelta(seconds=60)
    assert approvals.expire_due() == 1
    assert desk.drive(run_id).status == "completed"
    (result,) = desk.messages(thread_id)[1].tool_results or []
    assert result["expired"]
    assert kinds(desk, run_id, "tool-output-denied") == ["tool-output-denied"]


@pytest.mark.parametrize(
    "questions",
    [
        [],
        [NOTE, NOTE],
        [{**SIZE, "defaults": None}],
        [{**NOTE, "id": str(number)} for number in range(6)],
        [{"id": "x"}],
    ],
)
def test_questions_that_make_no_sense_fail_the_call_and_park_nobody(asks: Asks, questions: list[Any]) -> None:
    desk = asks(*questions)
    run = desk.turn()
    (row,) = calls_of(desk, run.thread_id)
    assert (run.status, row.status) == ("completed", "failed")
    assert not kinds(desk, run.id, "elicitation")


def test_an_agent_that_may_not_ask_has_no_such_tool(asks: Asks) -> None:
    desk = asks(SIZE, allow=False)
    run = desk.turn()
    (row,) = calls_of(desk, run.thread_id)
    assert (run.status, row.status) == ("completed", "failed")
    assert 'There is no tool "ask"' in str(row.error)


def test_only_a_question_is_answered(site: Any) -> None:
    acting = Acting(site)
    acting.declare()
    desk = acting.site(cancel_call())
    _, _, call_id = waiting(desk)
    for decide in (approvals.skip, lambda actor, call: approvals.answer(actor, call, {})):
        with pytest.raises(NotQuestion):
            decide(ALICE, call_id)


def test_the_name_of_the_built_in_tool_is_taken() -> None:
    with isolated_registry():

        @tool(name="ask")
        def mine(text: str) -> str:
            """Mine."""
            return text

        assert "a built-in tool's" in "\n".join(registry.problems())
    assert ask.description.startswith("Ask the user")
