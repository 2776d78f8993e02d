"""What an agent asks before it answers: asked once, kept like any question, told to the model, and free of charge."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.actor import Actor
from agent.domain.model_calls import ModelRequest
from agent.errors import Invalid, NotAllowed
from agent.flows import approvals
from agent.flows.cancel import cancel
from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, isolated_registry, tool
from tests.flows.acting import calls_of, frame_of, kinds
from tests.flows.conftest import ALICE, Site

SIZE = {"id": "size", "prompt": "Which size?", "options": [{"value": "s", "label": "Small"}], "defaults": ["s"]}
NAME = {"id": "name", "prompt": "Your name?"}
MakeSite = Callable[..., Site]


def desk_with(site: MakeSite, *replies: Any, when: str = "thread-start", **settings: Any) -> Site:
    intake = {"preamble": "Two things first.", "when": when, "questions": [SIZE, NAME]}
    agent(name="desk", prompt="p", tools=[], intake=intake)(type("Desk", (), {}))
    return site(list(replies) or ["Hello, Ana."], **settings)


def asked(desk: Site, **send: Any) -> tuple[str, str, str]:
    """A turn that waits for its answers: the run, the thread and the call."""
    run = desk.turn(**send)
    assert run.status == "waiting", run.error_message
    return run.id, run.thread_id, calls_of(desk, run.thread_id)[-1].id


def shown_answers(request: ModelRequest) -> dict[str, Any]:
    """What a model was told of the questions that came before its call."""
    (result,) = request.messages[-1].tool_results
    return dict(result.output)


def test_the_questions_come_before_the_first_model_call_and_cost_none(site: MakeSite) -> None:
    desk = desk_with(site)
    run_id, thread_id, call_id = asked(desk)
    assert not desk.provider.requests
    assert [frame["kind"] for frame in desk.frames(run_id)] == ["tool-input-available", "elicitation"]
    shown = frame_of(desk, run_id, "elicitation")
    assert (shown["id"], shown["request"]["preamble"]) == (call_id, "Two things first.")
    assert [each["id"] for each in shown["request"]["questions"]] == ["size", "name"]
    (row,) = calls_of(desk, thread_id)
    assert (row.tool_name, row.tool_type, row.status, row.approver) == (
        "ask",
        "action",
        "pending_approval",
        "requester",
    )
    assert (row.expires_at, desk.store.usage_of_run(run_id)) == (None, [])
    with pytest.raises(NotAllowed):
        approvals.answer(Actor("stranger"), call_id, {})


def test_the_answers_are_what_the_first_model_call_is_shown_last(site: MakeSite) -> None:
    desk = desk_with(site)
    run_id, thread_id, call_id = asked(desk)
    with pytest.raises(Invalid):
        approvals.answer(ALICE, call_id, {"size": ["xl"]})
    approvals.answer(ALICE, call_id, {"name": ["Ana"]})
    assert desk.drive(run_id).status == "completed"
    (request,) = desk.provider.requests
    assert [message.role for message in request.messages] == ["user", "assistant"]
    told = shown_answers(request)
    assert (told["answers"], told["defaulted"]) == ({"size": ["s"], "name": ["Ana"]}, ["size"])
    question, asking, answer = desk.messages(thread_id)
    assert (question.content, asking.content, answer.content) == ("Hello", "", "Hello, Ana.")
    assert (asking.tool_results or [{}])[0]["output"] == told == calls_of(desk, thread_id)[0].output
    assert len(desk.store.usage_of_run(run_id)) == 1
    names = [step.name for step in desk.steps(run_id)]
    assert names[-6:-2] == ["intake:ask", f"await:{call_id}", "intake:answers", "llm:0"]
    assert kinds(desk, run_id, "elicitation", "tool-output", "step-start") == [
        "elicitation",
        "tool-output",
        "step-start",
    ]


@pytest.mark.parametrize(
    ("decide", "skipped"), [(approvals.skip, True), (approvals.reject, True), (approvals.approve, False)]
)
def test_skipped_or_approved_it_goes_on_with_what_is_assumed(
    site: MakeSite, decide: Callable[..., None], skipped: bool
) -> None:
    desk = desk_with(site)
    run_id, _, call_id = asked(desk)
    decide(ALICE, call_id)
    assert desk.drive(run_id).status == "completed"
    told = shown_answers(desk.provider.requests[0])
    assert (told["skipped"], told["answers"], told["defaulted"]) == (
        skipped,
        {"size": ["s"], "name": []},
        ["size", "name"],
    )


def test_a_conversation_is_asked_once_unless_every_turn_is(site: MakeSite) -> None:
    desk = desk_with(site, "One.", "Two.")
    run_id, thread_id, call_id = asked(desk)
    approvals.skip(ALICE, call_id)
    desk.drive(run_id)
    assert desk.turn(thread_id=thread_id).status == "completed"
    assert len(calls_of(desk, thread_id)) == 1


def test_an_answer_that_is_given_again_asks_again_for_its_answers_are_gone(site: MakeSite) -> None:
    desk = desk_with(site, "One.", "Two.")
    run_id, thread_id, call_id = asked(desk)
    approvals.skip(ALICE, call_id)
    desk.drive(run_id)
    _, _, again = asked(desk, message=None, thread_id=thread_id, regenerate=True)
    assert again != call_id
    assert [row.id for row in calls_of(desk, thread_id)] == [again]


def test_every_turn_may_begin_with_its_questions(site: MakeSite) -> None:
    desk = desk_with(site, "One.", "Two.", when="every-turn")
    run_id, thread_id = "", None
    for _ in range(2):
        run_id, thread_id, call_id = asked(desk, thread_id=thread_id)
        approvals.skip(ALICE, call_id)
        assert desk.drive(run_id).status == "completed"
    ids = [shown.id for shown in desk.provider.requests[1].messages[-1].tool_calls]
    assert ids == [f"intake-{run_id}"]


def test_questions_that_nobody_answers_in_time_expire_and_the_model_is_told(site: MakeSite) -> None:
    desk = desk_with(site, ASK_TTL_SECONDS=60)
    run_id, _, _ = asked(desk)
    desk.store.clock = lambda: timezone.now() + timedelta(seconds=60)
    assert approvals.expire_due() == 1
    assert desk.drive(run_id).status == "completed"
    assert shown_answers(desk.provider.requests[0])["expired"]


def test_a_turn_that_is_stopped_while_it_asks_leaves_no_open_card(site: MakeSite) -> None:
    desk = desk_with(site)
    run_id, thread_id, _ = asked(desk)
    cancel(ALICE, run_id)
    (row,) = calls_of(desk, thread_id)
    assert (row.status, desk.store.active_run_for_thread(thread_id)) == ("failed", None)


def test_what_was_begun_to_be_asked_is_asked_whatever_is_declared_now(site: MakeSite) -> None:
    desk = desk_with(site)
    run_id, _, call_id = asked(desk)
    desk.registry._agents.clear()
    agent(name="desk", prompt="p", tools=[])(type("Desk", (), {}))
    approvals.answer(ALICE, call_id, {"name": ["Ana"]})
    assert desk.drive(run_id).status == "completed"
    assert shown_answers(desk.provider.requests[0])["answers"]["name"] == ["Ana"]


def test_a_model_that_repeats_the_questions_id_gets_another(site: MakeSite) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    agent(name="desk", prompt="p", tools=[look], intake={"questions": [NAME]})(type("Desk", (), {}))
    desk = site(lambda request: _echoed(request))
    run_id, thread_id, call_id = asked(desk)
    approvals.skip(ALICE, call_id)
    assert desk.drive(run_id).status == "completed"
    assert calls_of(desk, thread_id)[-1].provider_call_id.endswith("-2")


def _echoed(request: ModelRequest) -> ScriptedReply:
    (shown,) = request.messages[-1].tool_calls
    return ScriptedReply(calls=[call("look", shown.id)]) if shown.name == "ask" else ScriptedReply("Done.")


@pytest.mark.parametrize(
    ("intake", "text"),
    [
        ({"questions": []}, "intake.questions: "),
        ({"questions": [NAME, NAME]}, "the id 'name' is used twice"),
        ({"questions": [NAME], "when": "never"}, "intake.when: "),
        ({"questions": [NAME], "wen": "every-turn"}, "intake.wen: "),
        ({"questions": [{**NAME, "id": str(number)} for number in range(101)]}, "intake.questions: "),
        ("Your name?", "intake: "),
    ],
)
def test_a_declaration_that_asks_nothing_sensible_is_refused(intake: Any, text: str) -> None:
    with isolated_registry() as registry:
        agent(name="desk", prompt="p", intake=intake)(type("Desk", (), {}))
        assert text in "\n".join(registry.problems())


def test_a_choice_without_a_default_may_be_declared() -> None:
    with isolated_registry() as registry:
        question = {**SIZE, "defaults": None}
        agent(name="desk", prompt="p", tools=[], intake={"questions": [question]})(type("Desk", (), {}))
        assert registry.problems() == []
